{{- /* Rules of network policies for more than one role. Out to what answers names. */ -}}
{{- define "oarlock.toDns" -}}
{{- with .Values.networkPolicy.dns }}
- ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
  to:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "oarlock.toRedis" -}}
{{- if eq .Values.redis.mode "bundled" }}
- ports: [{port: redis, protocol: TCP}]
  to:
    {{- include "oarlock.podsOf" (list . "redis") | nindent 4 }}
{{- else }}
- ports:
    {{- range include "oarlock.redisPorts" . | fromJsonArray }}
    - {port: {{ int . }}, protocol: TCP}
    {{- end }}
  {{- with .Values.networkPolicy.redis.cidrs }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{- /* Ports at which the fleet's processes serve their figures. */ -}}
{{- define "oarlock.metricsPortRules" -}}
{{- range $port := include "oarlock.metricsPorts" . | fromJsonArray }}
- {port: {{ $port.name }}, protocol: TCP}
{{- end }}
{{- end -}}

{{- /* As peers: the pods of (root, role, ...). */ -}}
{{- define "oarlock.podsOf" -}}
- podSelector:
    matchLabels:
      {{- include "oarlock.selector" (first .) | nindent 6 }}
    matchExpressions:
      - {key: app.kubernetes.io/component, operator: In, values: {{ rest . | toJson }}}
{{- end -}}
