{{- /* The words of the command, as JSON. Other pods of the cluster know it by the name of its Service. */ -}}
{{- define "oarlock.boardArgs" -}}
{{- $board := .Values.board -}}{{- $full := include "oarlock.fullname" . -}}
{{- $args := list "board" "--bind" (printf ":%d" (int $board.port)) -}}
{{- with $board.pathPrefix }}{{ $args = concat $args (list "--path-prefix" .) }}{{ end -}}
{{- range prepend $board.host (printf "%s-board.%s.svc" $full .Release.Namespace) -}}
{{- $args = concat $args (list "--host" .) -}}
{{- end -}}
{{- if $board.write }}{{ $args = append $args "--write" }}{{ end -}}
{{- if $board.tokenSecret }}{{ $args = concat $args (list "--token-file" "/etc/oarlock/board/token") }}{{ end -}}
{{- if $board.apiCalls -}}
{{- range include "oarlock.metricsUrls" . | fromJsonArray }}{{ $args = concat $args (list "--metrics" .) }}{{ end -}}
{{- end -}}
{{- $args | toJson -}}
{{- end -}}

{{- /* Where each process serves its figures, as JSON. Of workers that come and go: of all that there may be. */ -}}
{{- define "oarlock.metricsUrls" -}}
{{- $full := include "oarlock.fullname" . -}}{{- $scaling := .Values.worker.autoscaling -}}
{{- $workers := ternary .Values.worker.replicas $scaling.maxReplicas (eq $scaling.mode "none") -}}
{{- $urls := list -}}
{{- range $role, $pods := dict "ingestor" .Values.ingestor.replicas "worker" $workers -}}
{{- range $pod := until (int $pods) -}}
{{- range $port := include "oarlock.metricsPorts" $ | fromJsonArray -}}
{{- $urls = append $urls (printf "http://%s-%s-%d.%s-%s.%s.svc:%d" $full $role $pod $full $role $.Release.Namespace (int $port.port)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $urls | toJson -}}
{{- end -}}
