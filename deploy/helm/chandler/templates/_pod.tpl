{{/* The specification of a service's pod. Takes a dict of root, component and values (of the service). */}}
{{- define "chandler.pod" -}}
{{- $v := .root.Values }}
{{- $scheme := eq (include "chandler.opsScheme" .root) "https" | ternary ", scheme: HTTPS" "" }}
serviceAccountName: {{ include "chandler.serviceAccountName" . }}
automountServiceAccountToken: false
# Services are found by settings; variables for every Service of the namespace would only be noise.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ add $v.drainSeconds 10 }}
securityContext:
  {{- include "chandler.podSecurity" .root | trim | nindent 2 }}
containers:
  - name: {{ .component }}
    image: {{ include "chandler.image" (dict "root" .root "program" .component) }}
    imagePullPolicy: {{ $v.image.pullPolicy }}
    securityContext:
      {{- include "chandler.containerSecurity" . | trim | nindent 6 }}
    ports:
      {{- if eq .component "gateway" }}
      - {name: http, containerPort: 8080}
      {{- if $v.gateway.tls.secret }}
      - {name: https, containerPort: 8443}
      {{- end }}
      {{- end }}
      - {name: ops, containerPort: 9090}
    envFrom:
      - configMapRef: {name: {{ include "chandler.fullname" .root }}-{{ .component }}}
    env:
      {{- include "chandler.env" . | trim | nindent 6 }}
    # A service that starts before Postgres or NATS waits for it; five minutes, then it is started again.
    startupProbe:
      httpGet: {path: /healthz, port: ops{{ $scheme }}}
      periodSeconds: 5
      timeoutSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet: {path: /healthz, port: ops{{ $scheme }}}
      periodSeconds: 10
      timeoutSeconds: 2
      failureThreshold: 3
    readinessProbe:
      httpGet: {path: /readyz, port: ops{{ $scheme }}}
      periodSeconds: 5
      timeoutSeconds: 2
      failureThreshold: 2
    resources:
      {{- toYaml .values.resources | nindent 6 }}
    volumeMounts:
      {{- include "chandler.mounts" . | trim | nindent 6 }}
volumes:
  {{- include "chandler.volumes" . | trim | nindent 2 }}
{{- with include "chandler.placement" .root | trim }}
{{- . | nindent 0 }}
{{- end }}
topologySpreadConstraints:
  {{- if $v.topologySpreadConstraints }}
  {{- toYaml $v.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "chandler.selectorLabels" . | nindent 8 }}
  {{- end }}
{{- end }}

{{/* Variables from Secrets. Those of extraEnv replace the chart's: a name may stand once only. */}}
{{- define "chandler.env" -}}
{{- $own := list }}
{{- range .values.extraEnv }}{{ $own = append $own .name }}{{ end }}
{{- $secret := .root.Values.existingSecret }}
{{- if not (has "PGPASSWORD" $own) }}
- name: PGPASSWORD
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ include "chandler.passwordKey" .component }}}}
{{- end }}
{{- if and (eq .component "gateway") (not (has "CHANDLER_GATEWAY_API_PASSWORD" $own)) }}
- name: CHANDLER_GATEWAY_API_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: CHANDLER_GATEWAY_API_PASSWORD, optional: true}}
{{- end }}
{{- if and .root.Values.nats.existingSecret (not (has "CHANDLER_NATS_URL" $own)) }}
- name: CHANDLER_NATS_URL
  valueFrom: {secretKeyRef: {name: {{ .root.Values.nats.existingSecret }}, key: CHANDLER_NATS_URL}}
{{- end }}
{{- if and (eq .component "gateway") (not (has "CHANDLER_CREDENTIALS_RECIPIENT" $own)) }}
- name: CHANDLER_CREDENTIALS_RECIPIENT
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: CHANDLER_CREDENTIALS_RECIPIENT}}
{{- end }}
{{- if and (eq .component "gateway") (not (has "CHANDLER_CATALOG_CREDENTIALS_RECIPIENT" $own)) }}
- name: CHANDLER_CATALOG_CREDENTIALS_RECIPIENT
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: CHANDLER_CATALOG_CREDENTIALS_RECIPIENT}}
{{- end }}
{{- range include "chandler.natsFiles" . | fromYamlArray }}
{{- range (default .secret .configMap).items }}
{{- if not (has (printf "%s_FILE" .path) $own) }}
- {name: {{ .path }}_FILE, value: /etc/chandler/nats/{{ .path }}}
{{- end }}
{{- end }}
{{- end }}
{{- range include "chandler.opsFiles" .root | fromYamlArray }}
{{- range .secret.items }}
{{- if not (has (printf "%s_FILE" .path) $own) }}
- {name: {{ .path }}_FILE, value: /etc/chandler/ops/{{ .path }}}
{{- end }}
{{- end }}
{{- end }}
{{- range include "chandler.secretFiles" .component | fromYamlArray }}
{{- if not (has (printf "%s_FILE" .) $own) }}
- {name: {{ . }}_FILE, value: /etc/chandler/keys/{{ . }}}
{{- end }}
{{- end }}
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "chandler.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if include "chandler.secretFiles" .component }}
- {name: keys, mountPath: /etc/chandler/keys, readOnly: true}
{{- end }}
{{- if include "chandler.natsFiles" . }}
- {name: nats, mountPath: /etc/chandler/nats, readOnly: true}
{{- end }}
{{- if include "chandler.opsFiles" .root }}
- {name: ops, mountPath: /etc/chandler/ops, readOnly: true}
{{- end }}
{{- with include "chandler.caMount" .root | trim }}
{{ . }}
{{- end }}
{{- if eq .component "gateway" }}
- {name: default-catalogs, mountPath: /etc/chandler/default-catalogs, readOnly: true}
{{- if .root.Values.gateway.tls.secret }}
- {name: tls, mountPath: /etc/chandler/tls, readOnly: true}
{{- end }}
{{- end }}
{{- if eq .component "catalog-indexer" }}
- {name: cache, mountPath: /var/cache/chandler}
{{- range .values.catalogs }}
- {name: catalog-{{ .name }}, mountPath: /catalogs/{{ .name }}, readOnly: true}
{{- else }}
- {name: no-catalogs, mountPath: /catalogs, readOnly: true}
{{- end }}
{{- end }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "chandler.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- with include "chandler.secretFiles" .component | fromYamlArray }}
- name: keys
  secret:
    secretName: {{ $.root.Values.existingSecret }}
    defaultMode: 0440
    items:
      {{- range . }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- with include "chandler.natsFiles" . | trim }}
- name: nats
  projected:
    defaultMode: 0440
    sources:
      {{- . | nindent 6 }}
{{- end }}
{{- with include "chandler.opsFiles" .root | trim }}
- name: ops
  projected:
    defaultMode: 0440
    sources:
      {{- . | nindent 6 }}
{{- end }}
{{- with include "chandler.caVolume" .root | trim }}
{{ . }}
{{- end }}
{{- if eq .component "gateway" }}
- name: default-catalogs
  configMap:
    name: {{ include "chandler.fullname" .root }}-default-catalogs
{{- if .root.Values.gateway.tls.secret }}
- name: tls
  projected:
    defaultMode: 0440
    sources:
      {{- include "chandler.tlsFiles" .root | trim | nindent 6 }}
{{- end }}
{{- end }}
{{- if eq .component "catalog-indexer" }}
- name: cache
  emptyDir: {sizeLimit: {{ .values.cacheSize }}}
{{- range .values.catalogs }}
- name: catalog-{{ .name }}
  {{- toYaml .volume | nindent 2 }}
{{- else }}
# So that the root of all catalogs is there before the first of them.
- name: no-catalogs
  emptyDir: {sizeLimit: 1Mi}
{{- end }}
{{- end }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
