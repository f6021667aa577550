{{- define "attest.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "attest.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}

{{- define "attest.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "attest.name" .) }}
{{- end }}

{{/* Labels that select pods of one part: list $ "api". */}}
{{- define "attest.selector" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: attest
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "attest.labels" -}}
{{- $ := index . 0 -}}
{{ include "attest.selector" . }}
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
helm.sh/chart: {{ $.Chart.Name }}-{{ $.Chart.Version }}
{{- end }}

{{- define "attest.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "attest.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The settings of api and worker; secrets are files below /run/secrets. */}}
{{- define "attest.env" -}}
- {name: DATABASE_URL_FILE, value: /run/secrets/database-url}
- {name: NATS_URL_FILE, value: /run/secrets/nats-url}
- {name: SECRET_KEY_FILE, value: /run/secrets/secret-key}
- {name: ADMIN_TOKEN_FILE, value: /run/secrets/admin-token}
- {name: DSSE_KEY_FILE, value: 'live=/run/secrets/dsse-live.pem,test=/run/secrets/dsse-test.pem'}
- {name: LOG_KEY_FILE, value: 'live=/run/secrets/log-live.pem,test=/run/secrets/log-test.pem'}
- {name: BASE_URL, value: {{ .Values.baseUrl | quote }}}
- {name: LOG_DOMAIN, value: {{ .Values.logDomain | quote }}}
- {name: WITNESSES, value: /etc/attest/witnesses.json}
{{- if .Values.register.url }}
- {name: CHECKPOINT_REGISTER, value: {{ .Values.register.url | quote }}}
- {name: CHECKPOINT_REGISTER_KEY, value: {{ .Values.register.key | quote }}}
{{- else }}
- {name: CHECKPOINT_REGISTER, value: /var/lib/attest/register}
{{- end }}
- {name: DATA_DIR, value: /tmp}
- {name: OPS_HOST, value: 0.0.0.0}
{{- range $name, $key := .Values.secretFiles }}
- {name: {{ $name }}, value: /run/secrets/{{ $key }}}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{- define "attest.databaseSource" -}}
- secret:
    name: {{ .Values.databaseUrlSecret.name | default .Values.secretName }}
    items: [{key: {{ .Values.databaseUrlSecret.key | default "database-url" }}, path: database-url}]
{{- end }}

{{- define "attest.mounts" -}}
- {name: secrets, mountPath: /run/secrets, readOnly: true}
- {name: witnesses, mountPath: /etc/attest, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if not .Values.register.url }}
- {name: register, mountPath: /var/lib/attest/register}
{{- end }}
{{- end }}

{{/* list $ <size of /tmp> */}}
{{- define "attest.volumes" -}}
{{- $ := index . 0 -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- include "attest.databaseSource" $ | nindent 6 }}
      - secret:
          name: {{ $.Values.natsUrlSecret.name | default $.Values.secretName }}
          items: [{key: {{ $.Values.natsUrlSecret.key | default "nats-url" }}, path: nats-url}]
      - secret:
          name: {{ $.Values.secretName }}
          items:
            {{- range list "secret-key" "admin-token" "dsse-live.pem" "dsse-test.pem" "log-live.pem" "log-test.pem" }}
            - {key: {{ . }}, path: {{ . }}}
            {{- end }}
            {{- range $.Values.secretFiles }}
            - {key: {{ . }}, path: {{ . }}}
            {{- end }}
- name: witnesses
  secret: {secretName: {{ include "attest.name" $ }}-witnesses, defaultMode: 0440}
- name: tmp
  emptyDir: {sizeLimit: {{ index . 1 }}}
{{- if not $.Values.register.url }}
- name: register
  persistentVolumeClaim: {claimName: {{ $.Values.register.volume.existingClaim | default (printf "%s-register" (include "attest.name" $)) }}}
{{- end }}
{{- end }}

{{/* Pods of one part are on different nodes if that is possible: list $ "api". */}}
{{- define "attest.spread" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "attest.selector" . | nindent 6 }}
{{- end }}

{{- define "attest.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: ops}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: ops}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: ops}
  periodSeconds: 5
  timeoutSeconds: 3
{{- end }}
