{{/*
The pods of one role. Takes the chart's whole context as `root`, the `role`, and the values of that role as `part`.
*/}}
{{- define "mergeyard.replica" -}}
metadata:
  labels:
    {{- include "mergeyard.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
  annotations:
    checksum/config: {{ .root.Values.config | sha256sum }}
    {{- with .part.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "mergeyard.name" .root }}
  automountServiceAccountToken: false
  # The variable that Kubernetes would set for a service named mergeyard is one of our settings.
  enableServiceLinks: false
  # Five seconds until no new requests arrive, ten for those in progress, the rest for the shutdown.
  terminationGracePeriodSeconds: 30
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "mergeyard.selector" .root | nindent 10 }}
          app.kubernetes.io/component: {{ .role }}
  containers:
    - name: mergeyard
      image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      {{- include "mergeyard.settings" . | nindent 6 }}
      ports:
        - name: http
          containerPort: 8080
      {{- include "mergeyard.probes" . | nindent 6 }}
      {{- if eq .role "api" }}
      lifecycle:
        preStop:
          exec:
            command: ["sleep", "5"]
      {{- end }}
      resources:
        {{- toYaml .part.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - { name: config, mountPath: /etc/mergeyard, readOnly: true }
        - { name: data, mountPath: /var/lib/mergeyard }
        - { name: tmp, mountPath: /tmp }
        {{- if .root.Values.repositories.existingClaim }}
        - { name: repositories, mountPath: {{ .root.Values.repositories.mountPath | quote }} }
        {{- end }}
        {{- if .root.Values.secrets.existingSecret }}
        - { name: secrets, mountPath: /run/secrets/mergeyard, readOnly: true }
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "mergeyard.name" .root }}
    - name: data
      emptyDir:
        sizeLimit: {{ .part.dataSize }}
    - name: tmp
      emptyDir: {}
    {{- with .root.Values.secrets.existingSecret }}
    - name: secrets
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with .root.Values.repositories.existingClaim }}
    - name: repositories
      persistentVolumeClaim:
        claimName: {{ . }}
    {{- end }}
  {{- with .part.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .part.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .part.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "mergeyard.settings" -}}
env:
  - name: MERGEYARD_ROLE
    value: {{ .role }}
  - name: MERGEYARD_CONFIG
    value: /etc/mergeyard/mergeyard.toml
  - name: MERGEYARD_DATABASE_URL
    valueFrom:
      secretKeyRef:
        name: {{ required "database.existingSecret is required: name the Secret that contains the URL of PostgreSQL" .root.Values.database.existingSecret }}
        key: {{ .root.Values.database.key }}
  - name: MERGEYARD_PUBLIC_URL
    value: {{ required "publicUrl is required: set the URL at which users reach the service" .root.Values.publicUrl | quote }}
  - name: MERGEYARD_TRUSTED_PROXIES
    value: {{ .root.Values.trustedProxies | quote }}
  - name: MERGEYARD_OPEN_METRICS
    value: {{ .root.Values.metrics.open | quote }}
  - name: MERGEYARD_LOG_FORMAT
    value: json
  - name: MERGEYARD_LOG_LEVEL
    value: {{ .root.Values.logLevel }}
{{- end -}}

{{- define "mergeyard.probes" -}}
# The first replica that starts migrates the database schema, which can take a while.
startupProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 3
  timeoutSeconds: 3
  failureThreshold: 2
{{- end -}}
