{{- define "svc.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "svc.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "svc.selector" -}}
app.kubernetes.io/name: svc
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "svc.labels" -}}
{{ include "svc.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "svc.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
# Secrets are readable by this group, and the service connects to the kms through it.
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "svc.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "svc.environment" -}}
- name: SVC_CONFIG_FILE
  value: /etc/svc/svc.toml
- name: SVC_SERVER__HOST
  value: "0.0.0.0"
- name: SVC_SERVER__PORT
  value: {{ .Values.port | quote }}
{{- if .Values.egressPort }}
- name: SVC_SERVER__EGRESS_PORT
  value: {{ .Values.egressPort | quote }}
{{- end }}
- name: SVC_SERVER__TRANSPORT
  value: {{ .Values.transport | quote }}
{{- if .Values.tlsSecret }}
- name: SVC_SERVER__TLS__CERT_PEM_PATH
  value: /etc/svc/tls/tls.crt
- name: SVC_SERVER__TLS__KEY_PEM_PATH
  value: /etc/svc/tls/tls.key
{{- end }}
{{- if .Values.kms.secret }}
- name: SVC_KMS__SOCKET_PATH
  value: /run/kms/kms.sock
- name: SVC_KMS__SERVER_PUBLIC_KEY_PATH
  value: /run/client/server.public
- name: SVC_KMS__CLIENT_PRIVATE_KEY_PATH
  value: /run/client/client.private
{{- end }}
{{- range $name, $value := .Values.environment }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* Key files must be closed to other users, which the files of a Secret are not: each container gets a copy. */}}
{{- define "svc.keyContainers" -}}
- name: client-keys
  image: {{ include "svc.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: ["/bin/sh", "-ec"]
  args: ["umask 077; cp /secret/server.public /secret/client.private /run/client/"]
  securityContext: {{- include "svc.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - {name: client-secret, mountPath: /secret, readOnly: true}
    - {name: client-keys, mountPath: /run/client}
- name: kms-keys
  image: {{ include "svc.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: ["/bin/sh", "-ec"]
  args:
    - >-
      umask 077; mkdir -p /run/keys/kms/clients;
      cp /secret/server.private /secret/server.public /secret/master-*.key /run/keys/kms/;
      cp /secret/service.public /run/keys/kms/clients/
  securityContext: {{- include "svc.kmsSecurity" . | nindent 4 }}
  volumeMounts:
    - {name: kms-secret, mountPath: /secret, readOnly: true}
    - {name: kms-keys, mountPath: /run/keys}
{{- end -}}

{{/* Another user than the service, so that the service cannot read the master keys. */}}
{{- define "svc.kmsSecurity" -}}
{{ include "svc.containerSecurity" . }}
runAsUser: 10002
runAsGroup: 10001
{{- end -}}

{{- define "svc.kmsContainer" -}}
- name: kms
  image: {{ include "svc.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: ["kms", "serve", "--socket", "/run/kms/kms.sock", "--keys", "/run/keys/kms", "--group", "10001", "--replace"]
  securityContext: {{- include "svc.kmsSecurity" . | nindent 4 }}
  resources: {{- toYaml .Values.kms.resources | nindent 4 }}
  volumeMounts:
    - {name: kms-keys, mountPath: /run/keys}
    - {name: kms-socket, mountPath: /run/kms}
{{- end -}}

{{- define "svc.volumes" -}}
- name: config
  configMap:
    name: {{ include "svc.name" . }}
- name: tmp
  emptyDir: {sizeLimit: 256Mi}
{{- if .Values.tlsSecret }}
- name: tls
  secret: {secretName: {{ .Values.tlsSecret }}, defaultMode: 0440}
{{- end }}
{{- if .Values.kms.secret }}
- name: kms-socket
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: kms-keys
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: client-keys
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: kms-secret
  secret: {secretName: {{ .Values.kms.secret }}, defaultMode: 0440}
- name: client-secret
  secret:
    secretName: {{ .Values.kms.secret }}
    defaultMode: 0440
    items:
      - {key: server.public, path: server.public}
      - {key: client.private, path: client.private}
{{- end }}
{{- end -}}

{{- define "svc.mounts" -}}
- {name: config, mountPath: /etc/svc/svc.toml, subPath: svc.toml, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .Values.tlsSecret }}
- {name: tls, mountPath: /etc/svc/tls, readOnly: true}
{{- end }}
{{- if .Values.kms.secret }}
- {name: kms-socket, mountPath: /run/kms}
- {name: client-keys, mountPath: /run/client, readOnly: true}
{{- end }}
{{- end -}}
