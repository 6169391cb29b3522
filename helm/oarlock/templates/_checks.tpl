{{- /* What the schema cannot say. Every template of a workload asks for it. */ -}}
{{- define "oarlock.check" -}}
{{- $redis := .Values.redis -}}
{{- if .Values.operator.file -}}
{{- $accounts := .Values.serviceAccounts -}}
{{- if or $accounts.create (not $accounts.ingestor) (not $accounts.worker) -}}
{{- fail "serviceAccounts: with operator.file they come from `oarlock rbac FILE | kubectl apply -f -`; set create to false, and ingestor and worker to their names" -}}
{{- end -}}
{{- if gt (int .Values.shards) 1 -}}
{{- fail "shards: the fleet of operator.file is not divided; set it to 1" -}}
{{- end -}}
{{- if eq .Values.worker.autoscaling.mode "keda" -}}
{{- fail "worker.autoscaling.mode: keda asks for the built-in controllers' queues; with operator.file use hpa or none" -}}
{{- end -}}
{{- else if .Values.operator.configMap -}}
{{- fail "operator.file is missing: name the key of operator.configMap that holds the controllers, such as site.py" -}}
{{- else if not (include "oarlock.controllers" . | fromJsonArray) -}}
{{- fail (printf "controllers: all are switched off; leave at least one of %s on" (keys .Values.controllers | sortAlpha | join ", ")) -}}
{{- end -}}
{{- if .Values.dryRun.fleetId -}}
{{- $accounts := .Values.serviceAccounts -}}
{{- if .Values.operator.file -}}
{{- fail "dryRun.fleetId: controllers of your own cannot run dry; leave operator.file out" -}}
{{- end -}}
{{- if or $accounts.create (not $accounts.ingestor) (not $accounts.worker) -}}
{{- fail "serviceAccounts: with dryRun.fleetId they come from rbac/shadow/; set create to false, and ingestor and worker to their names" -}}
{{- end -}}
{{- if gt (int .Values.shards) 1 -}}
{{- fail "shards: a fleet that runs dry is not divided; set it to 1" -}}
{{- end -}}
{{- if eq .Values.worker.autoscaling.mode "keda" -}}
{{- fail "worker.autoscaling.mode: keda asks for the queues of a fleet that works; with dryRun.fleetId use hpa or none" -}}
{{- end -}}
{{- if hasKey .Values.settings "FLEET_ID" -}}
{{- fail "settings.FLEET_ID: dryRun.fleetId names the fleet; leave it out" -}}
{{- end -}}
{{- if eq .Values.dryRun.fleetId "oarlock" -}}
{{- fail "dryRun.fleetId: oarlock is the name of a fleet that works; give another, such as shadow" -}}
{{- end -}}
{{- end -}}
{{- if not $redis.existingSecret -}}
{{- $named := ternary $redis.urlKeys $redis.passwordKeys (eq $redis.mode "url") -}}
{{- $keys := list $named.ingestor $named.worker -}}
{{- if and .Values.board.enabled (not .Values.board.write) }}{{ $keys = append $keys $named.metrics }}{{ end -}}
{{- if eq $redis.mode "bundled" }}{{ $keys = values $redis.passwordKeys }}{{ end -}}
{{- fail (printf "redis.existingSecret is missing, and there are no default passwords: make a Secret with the keys %s and name it (docs/chart.md)" (sortAlpha $keys | join ", ")) -}}
{{- end -}}
{{- if and (has $redis.mode (list "standalone" "sentinel" "cluster")) (not $redis.hosts) -}}
{{- fail (printf "redis.hosts is missing: with redis.mode=%s name at least one host:port" $redis.mode) -}}
{{- end -}}
{{- if and (eq $redis.mode "bundled") $redis.hosts -}}
{{- fail "redis.hosts is for a Redis of your own, and redis.mode=bundled would make another: set redis.mode to standalone, sentinel or cluster, or leave hosts out" -}}
{{- end -}}
{{- range $where, $key := dict "redis" $redis.rqUrlKey "board" .Values.board.rqUrlKey -}}
{{- if and (eq $redis.mode "bundled") $key -}}
{{- fail (printf "%s.rqUrlKey is for a Redis of your own, and with redis.mode=bundled RQ's keys are in the bundled one: leave it out" $where) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $redis.mode "standalone") (gt (len $redis.hosts) 1) -}}
{{- fail "redis.hosts: redis.mode=standalone has one host; use sentinel or cluster for several" -}}
{{- end -}}
{{- if and (eq $redis.mode "cluster") (not $redis.rqUrlKey) -}}
{{- fail "redis.rqUrlKey is missing: RQ keeps its own keys on a Redis that is no Cluster; put its URL into redis.existingSecret and name the key" -}}
{{- end -}}
{{- if and (eq $redis.mode "cluster") (ne (int $redis.database) 0) -}}
{{- fail "redis.database: a Cluster has database 0 only" -}}
{{- end -}}
{{- if and (eq $redis.mode "bundled") $redis.tls.enabled -}}
{{- fail "redis.tls is for a Redis of your own; the bundled one has none: set redis.mode, or redis.tls.enabled=false" -}}
{{- end -}}
{{- range $user, $name := $redis.users }}{{ if and (eq $redis.mode "bundled") (ne $name $user) -}}
{{- fail "redis.users is for a Redis of your own; those of the bundled one are ingestor, worker and metrics" -}}
{{- end }}{{ end -}}
{{- if and $redis.tls.clientCertificate (not $redis.tls.enabled) -}}
{{- fail "redis.tls.clientCertificate needs redis.tls.enabled=true" -}}
{{- end -}}
{{- if and $redis.tls.clientCertificate (not $redis.tls.existingSecret) -}}
{{- fail (printf "redis.tls.existingSecret is missing: make a Secret with the keys %s and %s and name it" $redis.tls.certKey $redis.tls.keyKey) -}}
{{- end -}}
{{- if and .Values.signing.enabled (not .Values.signing.existingSecret) -}}
{{- fail (printf "signing.existingSecret is missing: make a Secret with the key %s (openssl rand -base64 32) and name it, or set signing.enabled=false" .Values.signing.key) -}}
{{- end -}}
{{- if and .Values.board.enabled .Values.board.write (not .Values.board.tokenSecret) -}}
{{- fail (printf "board.tokenSecret is missing: whoever may write gives a token; make a Secret with the key %s (openssl rand -hex 24) and name it, or set board.write=false" .Values.board.tokenKey) -}}
{{- end -}}
{{- if lt (int .Values.worker.processes) (int .Values.shards) -}}
{{- fail (printf "worker.processes: %d are too few for shards=%d, each needs one in every pod" (int .Values.worker.processes) (int .Values.shards)) -}}
{{- end -}}
{{- if and (or $redis.sentinelPasswordKey $redis.sentinelUser) (ne $redis.mode "sentinel") -}}
{{- fail "redis.sentinelUser and redis.sentinelPasswordKey are for redis.mode=sentinel" -}}
{{- end -}}
{{- if and $redis.sentinelUser (not $redis.sentinelPasswordKey) -}}
{{- fail "redis.sentinelPasswordKey is missing: redis.sentinelUser has a password" -}}
{{- end -}}
{{- $scaling := .Values.worker.autoscaling -}}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) -}}
{{- fail "worker.autoscaling: minReplicas is above maxReplicas" -}}
{{- end -}}
{{- if and (eq $scaling.mode "hpa") (eq (int $scaling.minReplicas) 0) -}}
{{- fail "worker.autoscaling.minReplicas: an HPA keeps at least 1; only mode=keda wakes from 0" -}}
{{- end -}}
{{- if and (eq $scaling.mode "keda") (eq $scaling.keda.source "prometheus") (not $scaling.keda.serverAddress) -}}
{{- fail "worker.autoscaling.keda.serverAddress is missing: the URL of the Prometheus that scrapes the fleet" -}}
{{- end -}}
{{- $ours := list "REDIS_URL" "RQ_REDIS_URL" "REDIS_TLS_CA" "REDIS_TLS_CERT" "REDIS_TLS_KEY" "SIGNING_KEY_FILE" "SHARDS" "SHARD" "METRICS_BIND_ADDRESS" "CONTROLLERS" "OPERATOR" "DRY_RUN" "LEASE_NAMESPACE" "LOG_FORMAT" "WORKERS" "BOARD_TOKEN" -}}
{{- $known := list "ALONGSIDE_UPSTREAM" "BATCH_BYTES" "BATCH_KEYS" "BATCH_KEYS_QUICK" "FAILED_AFTER" "FLEET_API_IN_FLIGHT" "FLEET_API_QPS" "FLEET_API_QPS_MIN" "FLEET_ID" "KUBECONFIG" "KUBE_API_BURST" "KUBE_API_QPS" "LEASE_MS" "RENEW_EVERY_MS" "REQUEST_TIMEOUT_MS" "SEND_MARGIN_MS" "SLOW_TURN_MS" "STALL_MS" "TERMINATING_REPLICAS" "TURN_LIMIT_MS" "VIEW_AGE_MAX_MS" "WRITES_IN_FLIGHT" -}}
{{- range $name, $_ := .Values.settings -}}
{{- if has $name $ours -}}
{{- fail (printf "settings.%s is set by another value of the chart: OARLOCK_%s would be there twice" $name $name) -}}
{{- end -}}
{{- if not (or (has $name $known) (regexMatch "^CONCURRENT_[A-Z0-9_]+_SYNCS$" $name)) -}}
{{- fail (printf "settings.%s: there is no such setting; docs/flags.md names them; one of another version goes into extraEnv as OARLOCK_%s" $name $name) -}}
{{- end -}}
{{- end -}}
{{- $set := list "OARLOCK_WORKERS" "OARLOCK_SHARD" -}}
{{- range concat (include "oarlock.redisEnv" (list . "worker" $redis.rqUrlKey) | fromYamlArray) (include "oarlock.ownEnv" . | fromYamlArray) -}}
{{- $set = append $set .name -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if has .name $set -}}
{{- fail (printf "extraEnv: %s is there twice, or set by another value of the chart; leave it out" .name) -}}
{{- end -}}
{{- $set = append $set .name -}}
{{- end -}}
{{- $selected := append (include "oarlock.labels" . | fromYaml | keys) "app.kubernetes.io/component" -}}
{{- range $where, $values := dict "ingestor" .Values.ingestor "worker" .Values.worker "board" .Values.board "redis.bundled" $redis.bundled -}}
{{- range $label, $_ := $values.podLabels -}}
{{- if has $label $selected -}}
{{- fail (printf "%s.podLabels: %s is given by the chart, which finds its pods by it; leave it out" $where $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if gt (add (int .Values.metrics.port) (int .Values.shards) -1) 65535 -}}
{{- fail (printf "metrics.port: shards=%d need as many ports from %d on, and the last there is is 65535; set a lower one" (int .Values.shards) (int .Values.metrics.port)) -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]" (include "oarlock.fullname" .)) -}}
{{- fail (printf "fullnameOverride: a Service cannot be named %s, a letter has to come first; give a name such as oarlock" (include "oarlock.fullname" .)) -}}
{{- end -}}
{{- end -}}
