{{- /* Environment that leads to Redis, of (root, user, key of the URL of RQ's Redis). Passwords come from the Secret,
       expanded by the kubelet. */ -}}
{{- define "oarlock.redisEnv" -}}
{{- $root := index . 0 -}}{{- $user := index . 1 -}}{{- $redis := $root.Values.redis -}}
{{- if eq $redis.mode "url" }}
- name: OARLOCK_REDIS_URL
  valueFrom: {secretKeyRef: {name: {{ $redis.existingSecret }}, key: {{ index $redis.urlKeys $user }}}}
{{- else }}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $redis.existingSecret }}, key: {{ index $redis.passwordKeys $user }}}}
{{- with $redis.sentinelPasswordKey }}
- name: SENTINEL_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $redis.existingSecret }}, key: {{ . }}}}
{{- end }}
- name: OARLOCK_REDIS_URL
  value: {{ include "oarlock.redisUrl" . | quote }}
{{- end }}
{{- with index . 2 }}
- name: OARLOCK_RQ_REDIS_URL
  valueFrom: {secretKeyRef: {name: {{ $redis.existingSecret }}, key: {{ . }}}}
{{- end }}
{{- if and $redis.tls.enabled $redis.tls.existingSecret }}
- {name: OARLOCK_REDIS_TLS_CA, value: /etc/oarlock/redis-tls/{{ $redis.tls.caKey }}}
{{- if $redis.tls.clientCertificate }}
- {name: OARLOCK_REDIS_TLS_CERT, value: /etc/oarlock/redis-tls/{{ $redis.tls.certKey }}}
- {name: OARLOCK_REDIS_TLS_KEY, value: /etc/oarlock/redis-tls/{{ $redis.tls.keyKey }}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Of (root, user). */ -}}
{{- define "oarlock.redisUrl" -}}
{{- $root := index . 0 -}}{{- $user := index . 1 -}}{{- $redis := $root.Values.redis -}}
{{- $login := printf "%s:$(REDIS_PASSWORD)" (index $redis.users $user) -}}
{{- $scheme := ternary "rediss" "redis" $redis.tls.enabled -}}
{{- $hosts := join "," $redis.hosts -}}
{{- if eq $redis.mode "bundled" -}}
redis://{{ $login }}@{{ include "oarlock.fullname" $root }}-redis.{{ $root.Release.Namespace }}.svc:6379/0
{{- else if eq $redis.mode "sentinel" -}}
{{ $scheme }}+sentinel://{{ $login }}@{{ $hosts }}/{{ $redis.sentinelMaster }}/{{ int $redis.database }}
{{- with $redis.sentinelPasswordKey }}?{{ with $redis.sentinelUser }}sentinel_user={{ . }}&{{ end }}sentinel_password=$(SENTINEL_PASSWORD){{ end -}}
{{- else if eq $redis.mode "cluster" -}}
{{ $scheme }}+cluster://{{ $login }}@{{ $hosts }}/
{{- else -}}
{{ $scheme }}://{{ $login }}@{{ $hosts }}/{{ int $redis.database }}
{{- end -}}
{{- end -}}

{{- /* Ports at which a Redis of one's own is met, as JSON. */ -}}
{{- define "oarlock.redisPorts" -}}
{{- $ports := .Values.networkPolicy.redis.ports -}}
{{- if not $ports -}}
{{- range .Values.redis.hosts }}{{ $ports = append $ports (splitList ":" . | last | int) }}{{ end -}}
{{- if has .Values.redis.mode (list "url" "sentinel") }}{{ $ports = append $ports 6379 }}{{ end -}}
{{- end -}}
{{- $seen := list -}}{{- range $ports }}{{ $seen = append $seen (int .) }}{{ end -}}
{{- uniq $seen | toJson -}}
{{- end -}}
