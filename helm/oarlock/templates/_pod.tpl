{{- /* What the pods of ingestors and workers have in common, of (root, role, args). */ -}}
{{- define "oarlock.pod" -}}
{{- $root := index . 0 -}}{{- $role := index . 1 -}}{{- $args := index . 2 -}}
{{- $values := index $root.Values $role -}}{{- $redis := $root.Values.redis -}}
metadata:
  labels:
    {{- include "oarlock.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $role }}
    {{- with $values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with $values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "oarlock.serviceAccount" (list $root $role) }}
  automountServiceAccountToken: true
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ int $values.terminationGracePeriodSeconds }}
  {{- with $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "oarlock.podSecurity" (list 65532 65532) | nindent 4 }}
  {{- if eq $role "ingestor" }}
  affinity:
    {{- include "oarlock.antiAffinity" $root | nindent 4 }}
  {{- end }}
  {{- with $values.topologySpread }}
  topologySpreadConstraints:
    {{- range . }}
    - topologyKey: {{ .topologyKey }}
      maxSkew: {{ int .maxSkew }}
      whenUnsatisfiable: {{ .whenUnsatisfiable }}
      labelSelector:
        matchLabels:
          {{- include "oarlock.selector" $root | nindent 10 }}
          app.kubernetes.io/component: {{ $role }}
    {{- end }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ $role }}
      image: {{ include "oarlock.image" (list $root.Values.image $root.Chart.AppVersion) }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{ $args | toJson }}
      env:
        {{- include "oarlock.redisEnv" (list $root $role $redis.rqUrlKey) | nindent 8 }}
        {{- include "oarlock.env" $root | nindent 8 }}
      ports:
        {{- range $port := include "oarlock.metricsPorts" $root | fromJsonArray }}
        - {name: {{ $port.name }}, containerPort: {{ int $port.port }}, protocol: TCP}
        {{- end }}
      startupProbe:
        {{- include "oarlock.probe" (list $root "livez") | nindent 8 }}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        {{- include "oarlock.probe" (list $root "livez") | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        {{- include "oarlock.probe" (list $root "readyz") | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 5
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      securityContext:
        {{- include "oarlock.containerSecurity" $root | nindent 8 }}
      volumeMounts:
        {{- include "oarlock.mounts" $root | nindent 8 }}
        {{- if $root.Values.signing.enabled }}
        - {name: signing, mountPath: /etc/oarlock/signing, readOnly: true}
        {{- end }}
  volumes:
    {{- include "oarlock.volumes" $root | nindent 4 }}
    {{- if $root.Values.signing.enabled }}
    - name: signing
      secret:
        secretName: {{ $root.Values.signing.existingSecret }}
        defaultMode: 0440
        items: [{key: {{ $root.Values.signing.key }}, path: signing.key}]
    {{- end }}
{{- end -}}

{{- /* Files that the board needs as well. */ -}}
{{- define "oarlock.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.operator.configMap }}
- {name: operator, mountPath: /etc/oarlock/operator, readOnly: true}
{{- end }}
{{- if and .Values.redis.tls.enabled .Values.redis.tls.existingSecret }}
- {name: redis-tls, mountPath: /etc/oarlock/redis-tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "oarlock.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- with .Values.operator.configMap }}
- name: operator
  configMap: {name: {{ . }}}
{{- end }}
{{- if and .Values.redis.tls.enabled .Values.redis.tls.existingSecret }}
- name: redis-tls
  secret:
    secretName: {{ .Values.redis.tls.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{- /* Which fleet it is: the board is told this much. */ -}}
{{- define "oarlock.fleetEnv" -}}
- {name: OARLOCK_SHARDS, value: {{ int .Values.shards | quote }}}
{{- with .Values.operator.file }}
- {name: OARLOCK_OPERATOR, value: {{ ternary (printf "/etc/oarlock/operator/%s" .) . (ne $.Values.operator.configMap "") | quote }}}
{{- end }}
{{- with .Values.dryRun.fleetId }}
- {name: OARLOCK_DRY_RUN, value: "true"}
- {name: OARLOCK_FLEET_ID, value: {{ . | quote }}}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: OARLOCK_{{ $name }}, value: {{ include "oarlock.text" $value | quote }}}
{{- end }}
{{- end -}}

{{- define "oarlock.env" -}}
{{ include "oarlock.ownEnv" . }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* What other values of the chart say. */ -}}
{{- define "oarlock.ownEnv" -}}
{{ include "oarlock.fleetEnv" . }}
- {name: OARLOCK_CONTROLLERS, value: "*{{ range $name, $is := .Values.controllers }}{{ if not (or $is $.Values.operator.file) }},-{{ $name }}{{ end }}{{ end }}"}
- {name: OARLOCK_LEASE_NAMESPACE, value: {{ include "oarlock.leaseNamespace" . }}}
- {name: OARLOCK_METRICS_BIND_ADDRESS, value: ":{{ int .Values.metrics.port }}"}
- {name: OARLOCK_LOG_FORMAT, value: {{ .Values.logFormat }}}
{{- if .Values.signing.enabled }}
- {name: OARLOCK_SIGNING_KEY_FILE, value: /etc/oarlock/signing/signing.key}
{{- end }}
{{- end -}}

{{- /* Each shard is served by processes of its own, at a port of its own. As JSON: [{name, port}]. */ -}}
{{- define "oarlock.metricsPorts" -}}
{{- $ports := list -}}
{{- range $shard := until (int .Values.shards) -}}
{{- $name := ternary "metrics" (printf "metrics-%d" $shard) (eq $shard 0) -}}
{{- $ports = append $ports (dict "name" $name "port" (add (int $.Values.metrics.port) $shard)) -}}
{{- end -}}
{{- $ports | toJson -}}
{{- end -}}

{{- /* Of (root, path). The kubelet asks one port; of several shards each has to answer. */ -}}
{{- define "oarlock.probe" -}}
{{- $root := index . 0 -}}{{- $path := index . 1 -}}
{{- $first := int $root.Values.metrics.port -}}{{- $shards := int $root.Values.shards -}}
{{- if eq $shards 1 -}}
httpGet: {path: /{{ $path }}, port: metrics}
{{- else -}}
exec:
  command:
    - python
    - -c
    - "import urllib.request as u; [u.urlopen(f'http://127.0.0.1:{port}/{{ $path }}', timeout=3) for port in range({{ $first }}, {{ add $first $shards }})]"
{{- end -}}
{{- end -}}

{{- /* A setting as text: whole numbers arrive as floats, and large ones would be written with an exponent. */ -}}
{{- define "oarlock.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ int64 . }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{- /* Of (user, group): the restricted Pod Security Standard, and files of Secrets readable by the group. */ -}}
{{- define "oarlock.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ index . 0 }}
runAsGroup: {{ index . 1 }}
fsGroup: {{ index . 1 }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "oarlock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* Of ingestors: not two on one node. */ -}}
{{- define "oarlock.antiAffinity" -}}
podAntiAffinity:
  {{- if eq .Values.ingestor.podAntiAffinity "required" }}
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          {{- include "oarlock.selector" . | nindent 10 }}
          app.kubernetes.io/component: ingestor
  {{- else }}
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "oarlock.selector" . | nindent 12 }}
            app.kubernetes.io/component: ingestor
  {{- end }}
{{- end -}}
