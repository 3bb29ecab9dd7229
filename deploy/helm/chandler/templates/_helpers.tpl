{{/* Names, labels and settings that several templates need. */}}

{{/* The services: name of each and the key of its values. */}}
{{- define "chandler.services" -}}
catalog-indexer: catalogIndexer
gateway: gateway
installer: installer
resolver: resolver
{{- end }}

{{- define "chandler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The beginning of every name. 40 letters leave room for the longest name of a service and for what
Kubernetes adds to the names of pods. */}}
{{- define "chandler.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := include "chandler.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* What selects the pods of a component; it can never change. Takes a dict of root and component. */}}
{{- define "chandler.selectorLabels" -}}
app.kubernetes.io/name: {{ include "chandler.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "chandler.labels" -}}
{{ include "chandler.selectorLabels" . }}
app.kubernetes.io/part-of: chandler
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The image of a program. Takes a dict of root and program. */}}
{{- define "chandler.image" -}}
{{- $digest := get .root.Values.image.digests .program }}
{{- if $digest }}
{{- printf "%s/%s@%s" .root.Values.image.repository .program $digest }}
{{- else }}
{{- printf "%s/%s:%s" .root.Values.image.repository .program (default .root.Chart.AppVersion .root.Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "chandler.serviceAccountName" -}}
{{- if .root.Values.serviceAccount.create }}
{{- printf "%s-%s" (include "chandler.fullname" .root) .component }}
{{- else }}
{{- .root.Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The URL of Postgres with the role of a service, without a password: that comes from the Secret as
PGPASSWORD and needs no escaping. */}}
{{- define "chandler.databaseURL" -}}
{{- $db := .root.Values.database }}
{{- $host := required "database.host: the host name of Postgres is required" $db.host }}
{{- $query := printf "sslmode=%s" $db.sslMode }}
{{- if or $db.ca.secret $db.ca.configMap }}
{{- $query = printf "%s&sslrootcert=/etc/chandler/database-ca/ca.crt" $query }}
{{- end }}
{{- printf "postgres://chandler_%s@%s:%v/%s?%s" (replace "-" "_" .component) $host $db.port $db.name $query }}
{{- end }}

{{/* The variable that holds the password of a service's role: its key in the Secret. */}}
{{- define "chandler.passwordKey" -}}
{{- printf "CHANDLER_%s_PASSWORD" (. | upper | replace "-" "_") }}
{{- end }}

{{/* Settings of a service that are no secrets, as environment variables. Takes a dict of root and component. */}}
{{- define "chandler.settings" -}}
{{- $v := .root.Values }}
CHANDLER_DATABASE_URL: {{ include "chandler.databaseURL" . | quote }}
{{- if not $v.nats.existingSecret }}
CHANDLER_NATS_URL: {{ required "nats.url: the URL of NATS is required, or nats.existingSecret" $v.nats.url | quote }}
{{- end }}
CHANDLER_NATS_ALLOW_PLAINTEXT: {{ $v.nats.allowPlaintext | quote }}
CHANDLER_NATS_ALLOW_OPEN: {{ $v.nats.allowOpen | quote }}
{{- if eq .component "installer" }}
CHANDLER_NATS_STREAMS: {{ include "chandler.streams" .root | trim | quote }}
CHANDLER_EXECUTOR_CAPACITY: {{ $v.installer.capacity | quote }}
{{- end }}
CHANDLER_OPS_LISTEN: ":9090"
CHANDLER_LOG_LEVEL: {{ $v.log.level | quote }}
CHANDLER_LOG_FORMAT: {{ $v.log.format | quote }}
CHANDLER_DRAIN: {{ printf "%vs" $v.drainSeconds | quote }}
{{- with $v.otlpEndpoint }}
CHANDLER_OTLP_ENDPOINT: {{ . | quote }}
{{- end }}
{{- if eq .component "gateway" }}
CHANDLER_LISTEN: ":8080"
CHANDLER_DEFAULT_CATALOGS: /etc/chandler/default-catalogs/catalogs.yaml
CHANDLER_OIDC_PROVIDERS: /etc/chandler/default-catalogs/oidc-providers.yaml
CHANDLER_GLOBAL_NAMESPACES: {{ join "," $v.gateway.globalNamespaces | default "-" | quote }}
CHANDLER_GLOBAL_CATALOG_NAMESPACES: {{ join "," $v.gateway.globalCatalogNamespaces | default "-" | quote }}
{{- end }}
{{- if eq .component "gateway" }}
CHANDLER_TRUSTED_PROXIES: {{ join "," $v.gateway.trustedProxies | quote }}
CHANDLER_CORS_ORIGINS: {{ join "," $v.gateway.corsOrigins | quote }}
CHANDLER_CONSOLE_URL: {{ $v.gateway.consoleURL | quote }}
{{- with $v.gateway.webhookAllowedNetworks }}
CHANDLER_WEBHOOK_ALLOWED_NETWORKS: {{ join "," . | quote }}
{{- end }}
CHANDLER_ACCESS_LOG_RETENTION: {{ $v.gateway.accessLogRetention | quote }}
CHANDLER_MAX_TOKEN_LIFE: {{ $v.gateway.maxTokenLife | quote }}
CHANDLER_KEEP_UNUSED_MODELS: {{ $v.gateway.keepUnusedModels | quote }}
CHANDLER_REQUEST_RATE: {{ $v.gateway.limits.requestRate | quote }}
CHANDLER_REFUSED_RATE: {{ $v.gateway.limits.refusedRate | quote }}
CHANDLER_STREAMS: {{ $v.gateway.limits.streams | quote }}
CHANDLER_OWN_STREAMS: {{ $v.gateway.limits.ownStreams | quote }}
CHANDLER_NEW_IDENTITIES: {{ $v.gateway.limits.newIdentities | quote }}
{{- if $v.gateway.tls.secret }}
CHANDLER_TLS_LISTEN: ":8443"
CHANDLER_TLS_CERTIFICATE_FILE: /etc/chandler/tls/tls.crt
CHANDLER_TLS_KEY_FILE: /etc/chandler/tls/tls.key
{{- if $v.gateway.tls.authorities }}
CHANDLER_CLIENT_AUTHORITIES: /etc/chandler/default-catalogs/client-authorities.yaml
{{- end }}
{{- else if $v.gateway.tls.authorities }}
{{- fail "gateway.tls.secret: authorities of client certificates want the certificate of the gateway" }}
{{- end }}
CHANDLER_LEGAL_HOLD: {{ $v.retention.legalHold | quote }}
{{- end }}
{{- if ne .component "gateway" }}
CHANDLER_RETENTION: {{ $v.retention.period | quote }}
CHANDLER_LEGAL_HOLD: {{ $v.retention.legalHold | quote }}
{{- end }}
{{- if eq .component "catalog-indexer" }}
CHANDLER_CATALOG_ROOT: /catalogs
CHANDLER_POLL: {{ $v.catalogIndexer.poll | quote }}
CHANDLER_REMOTE_POLL: {{ $v.catalogIndexer.remotePoll | quote }}
CHANDLER_CATALOG_CACHE: /var/cache/chandler
{{- with $v.catalogIndexer.mirrors }}
CHANDLER_CATALOG_MIRRORS: {{ toJson . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* What the installation chooses for its streams, as JSON without what is left to the server. */}}
{{- define "chandler.streams" -}}
{{- $s := dict }}
{{- range $key, $value := .Values.nats.streams }}
{{- if $value }}
{{- $_ := set $s $key $value }}
{{- end }}
{{- end }}
{{- toJson $s }}
{{- end }}

{{/* Files of NATS that a service gets, as sources of a projected volume: who it is there, and certificates. */}}
{{- define "chandler.natsFiles" -}}
{{- $v := .root.Values }}
{{- $user := .component | upper | replace "-" "_" }}
{{- if eq $v.nats.auth "nkey" }}
- secret:
    name: {{ $v.existingSecret }}
    items: [{key: CHANDLER_NATS_{{ $user }}_SEED, path: CHANDLER_NATS_NKEY_SEED}]
{{- else if eq $v.nats.auth "credentials" }}
- secret:
    name: {{ $v.existingSecret }}
    items: [{key: CHANDLER_NATS_{{ $user }}_CREDENTIALS, path: CHANDLER_NATS_CREDENTIALS}]
{{- end }}
{{- if $v.nats.ca.secret }}
- secret:
    name: {{ $v.nats.ca.secret }}
    items: [{key: {{ $v.nats.ca.key | quote }}, path: CHANDLER_NATS_CA}]
{{- else if $v.nats.ca.configMap }}
- configMap:
    name: {{ $v.nats.ca.configMap }}
    items: [{key: {{ $v.nats.ca.key | quote }}, path: CHANDLER_NATS_CA}]
{{- end }}
{{- with $v.nats.clientCertificateSecret }}
- secret:
    name: {{ . }}
    items:
      - {key: tls.crt, path: CHANDLER_NATS_CLIENT_CERTIFICATE}
      - {key: tls.key, path: CHANDLER_NATS_CLIENT_KEY}
{{- end }}
{{- end }}

{{/* Files that protect health and metrics, as sources of a projected volume. Takes the root. */}}
{{- define "chandler.opsFiles" -}}
{{- with .Values.ops.tlsSecret }}
- secret:
    name: {{ . }}
    items:
      - {key: tls.crt, path: CHANDLER_OPS_CERTIFICATE}
      - {key: tls.key, path: CHANDLER_OPS_KEY}
{{- end }}
{{- with .Values.ops.tokenSecret }}
- secret:
    name: {{ . }}
    items: [{key: CHANDLER_OPS_TOKEN, path: CHANDLER_OPS_TOKEN}]
{{- end }}
{{- end }}

{{/* How health and metrics are asked: http or https. */}}
{{- define "chandler.opsScheme" -}}
{{- empty .Values.ops.tlsSecret | ternary "http" "https" }}
{{- end }}

{{/* The file with the catalogs that the installation comes with. */}}
{{- define "chandler.defaultCatalogs" -}}
catalogs:
{{- toYaml .Values.gateway.defaultCatalogs | nindent 2 }}
{{- end }}

{{- define "chandler.oidcProviders" -}}
providers:
{{- toYaml .Values.gateway.oidcProviders | nindent 2 }}
{{- end }}

{{/* The file with the authorities of client certificates. */}}
{{- define "chandler.clientAuthorities" -}}
authorities:
{{- range .Values.gateway.tls.authorities }}
- name: {{ .name }}
  caFile: /etc/chandler/tls/{{ .name }}/ca.pem
  {{- with omit . "name" "ca" "revocation" }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if .revocation }}
  revocationFile: /etc/chandler/tls/{{ .name }}/revoked.pem
  {{- end }}
{{- end }}
{{- end }}

{{/* What is beside the certificate of the gateway: certificates of authorities, and those that they revoked. */}}
{{- define "chandler.tlsFiles" -}}
{{- with .Values.gateway.tls }}
- secret:
    name: {{ .secret }}
    items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
{{- range .authorities }}
- configMap:
    name: {{ .ca.configMap }}
    items: [{key: {{ .ca.key }}, path: {{ .name }}/ca.pem}]
{{- if .revocation }}
- configMap:
    name: {{ .revocation.configMap }}
    items: [{key: {{ .revocation.key }}, path: {{ .name }}/revoked.pem}]
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Keys of the Secret that a service gets as files, each only what it needs. */}}
{{- define "chandler.secretFiles" -}}
{{- if eq . "gateway" }}
- CHANDLER_ADMIN_TOKEN
- CHANDLER_HOOK_KEY
- CHANDLER_CONFIGURATION_KEY
- CHANDLER_SOURCE_KEY
- CHANDLER_ANNOTATION_KEY
- CHANDLER_REASON_KEY
{{- else if eq . "catalog-indexer" }}
- CHANDLER_CATALOG_CREDENTIALS_IDENTITY
- CHANDLER_SOURCE_KEY
{{- else if eq . "resolver" }}
- CHANDLER_CONFIGURATION_KEY
{{- else if eq . "installer" }}
- CHANDLER_CREDENTIALS_IDENTITY
- CHANDLER_GRANT_KEY
- CHANDLER_CONFIGURATION_KEY
- CHANDLER_SOURCE_KEY
- CHANDLER_ANNOTATION_KEY
{{- end }}
{{- end }}

{{/* What the restricted pod security standard asks of a pod, and of a container. */}}
{{- define "chandler.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .Values.runAsUser }}
runAsGroup: {{ .Values.runAsUser }}
fsGroup: {{ .Values.runAsUser }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "chandler.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Volume with the certificate of the authority of Postgres. */}}
{{- define "chandler.caVolume" -}}
{{- with .Values.database.ca }}
{{- if .secret }}
- name: database-ca
  secret:
    secretName: {{ .secret }}
    items: [{key: {{ .key | quote }}, path: ca.crt}]
{{- else if .configMap }}
- name: database-ca
  configMap:
    name: {{ .configMap }}
    items: [{key: {{ .key | quote }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- end }}

{{- define "chandler.caMount" -}}
{{- if or .Values.database.ca.secret .Values.database.ca.configMap }}
- {name: database-ca, mountPath: /etc/chandler/database-ca, readOnly: true}
{{- end }}
{{- end }}

{{/* Where pods go. */}}
{{- define "chandler.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
