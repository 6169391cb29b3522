{{- define "oarlock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "oarlock.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "oarlock.labels" -}}
{{ include "oarlock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{- /* Of a dict of registry, repository, tag, digest; the second argument: the tag where none is given. */ -}}
{{- define "oarlock.image" -}}
{{- $image := index . 0 -}}
{{- if $image.registry }}{{ trimSuffix "/" $image.registry }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default (index . 1) $image.tag }}{{ end -}}
{{- end -}}

{{- /* Of (root, role). */ -}}
{{- define "oarlock.serviceAccount" -}}
{{- $root := index . 0 -}}{{- $role := index . 1 -}}
{{- default (printf "%s-%s" (include "oarlock.fullname" $root) $role) (index $root.Values.serviceAccounts $role) -}}
{{- end -}}

{{- define "oarlock.leaseNamespace" -}}
{{- default .Release.Namespace .Values.lease.namespace -}}
{{- end -}}

{{- /* Names of controllers that are on, as JSON. */ -}}
{{- define "oarlock.controllers" -}}
{{- $on := list -}}
{{- range $name, $is := .Values.controllers }}{{ if $is }}{{ $on = append $on $name }}{{ end }}{{ end -}}
{{- $on | toJson -}}
{{- end -}}

{{- /* The queues of those controllers, as JSON: a queue of the same name, but for some. */ -}}
{{- define "oarlock.queues" -}}
{{- $of := dict "replicationcontroller" (list "replicationmanager") "daemonset" (list "daemonset" "daemonset-node-updates") -}}
{{- $queues := list -}}
{{- range include "oarlock.controllers" . | fromJsonArray }}{{ $queues = concat $queues (default (list .) (get $of .)) }}{{ end -}}
{{- $queues | toJson -}}
{{- end -}}

{{- /* What kube-controller-manager's --controllers has to say. */ -}}
{{- define "oarlock.upstreamFlag" -}}
--controllers=*{{ range include "oarlock.controllers" . | fromJsonArray }},-{{ . }}{{ end }}
{{- end -}}
