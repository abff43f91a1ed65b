{{/* The pod of an agent; with .test that of `helm test`, which runs doctor with the same rights and mounts. */}}
{{- define "unghost.pod" -}}
serviceAccountName: {{ include "unghost.serviceAccountName" . }}
priorityClassName: {{ .Values.priorityClassName }}
# The agent must start on a node whose ghosts keep new pods from getting a network. CNI plugins that it runs act on the
# node's links.
hostNetwork: true
# Signals reach the node's processes: hung plugins and leaked shims can be ended.
hostPID: true
dnsPolicy: Default
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if not .test }}
{{- if or .Values.guard.enabled .Values.initContainers }}
initContainers:
  {{- with .Values.initContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if .Values.guard.enabled }}
  - name: cni-guard
    image: {{ include "unghost.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    # A node where it cannot be installed has its agent all the same.
    args:
      - cni
      - install
      - --host-root=/host
      - --yes
      - --no-fail
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    securityContext:
      runAsUser: 0
      runAsGroup: 0
      readOnlyRootFilesystem: true
      privileged: false
      allowPrivilegeEscalation: false
      seccompProfile:
        type: RuntimeDefault
      capabilities:
        drop:
          - ALL
        add:
          # Directories of the host's root are read as it sees them.
          - DAC_OVERRIDE
    volumeMounts:
      # The guard's directory in /opt, and the runtime's configuration in /etc or /var.
      - name: host
        mountPath: /host
        mountPropagation: HostToContainer
  {{- end }}
{{- end }}
{{- end }}
containers:
  - name: {{ if .test }}doctor{{ else }}agent{{ end }}
    image: {{ include "unghost.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args:
      {{- if .test }}
      - doctor
      - --host-root=/host
      - --config=/etc/unghost/agent.yaml
      {{- else }}
      - agent
      - --config=/etc/unghost/agent.yaml
      - --host-root=/host
      {{- if eq (include "unghost.listen" .) "loopback" }}
      - --listen=127.0.0.1:{{ .Values.port }}
      {{- else }}
      # The address may be IPv6. Loopback is served beside it, on the same port.
      - --listen=[$(HOST_IP)]:{{ .Values.port }}
      {{- end }}
      {{- with .Values.extraArgs }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- end }}
    env:
      - name: NODE_NAME
        valueFrom:
          fieldRef:
            fieldPath: spec.nodeName
      {{- if ne (include "unghost.listen" .) "loopback" }}
      - name: HOST_IP
        valueFrom:
          fieldRef:
            fieldPath: status.hostIP
      {{- end }}
      - name: POD_NAME
        valueFrom:
          fieldRef:
            fieldPath: metadata.name
      - name: POD_NAMESPACE
        valueFrom:
          fieldRef:
            fieldPath: metadata.namespace
      - name: POD_UID
        valueFrom:
          fieldRef:
            fieldPath: metadata.uid
      {{- if .Values.apiServer.host }}
      - name: KUBERNETES_SERVICE_HOST
        value: {{ .Values.apiServer.host | quote }}
      - name: KUBERNETES_SERVICE_PORT
        value: {{ .Values.apiServer.port | default "443" | quote }}
      {{- end }}
      {{- with .Values.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- if not .test }}
    ports:
      - name: http
        containerPort: {{ .Values.port }}
        hostPort: {{ .Values.port }}
        protocol: TCP
    # On loopback, which the network cannot exhaust. /healthz and /readyz want no token.
    startupProbe:
      httpGet:
        host: 127.0.0.1
        path: /healthz
        port: http
      {{- toYaml .Values.startupProbe | nindent 6 }}
    livenessProbe:
      httpGet:
        host: 127.0.0.1
        path: /healthz
        port: http
      {{- toYaml .Values.livenessProbe | nindent 6 }}
    readinessProbe:
      httpGet:
        host: 127.0.0.1
        path: /readyz
        port: http
      {{- toYaml .Values.readinessProbe | nindent 6 }}
    {{- end }}
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    securityContext:
      # The runtime's socket, CNI caches and leases belong to root.
      runAsUser: 0
      runAsGroup: 0
      readOnlyRootFilesystem: true
      privileged: false
      allowPrivilegeEscalation: false
      seccompProfile:
        type: RuntimeDefault
      capabilities:
        drop:
          - ALL
        add:
          # Reading files and directories without read permission, and counting the inotify instances of other users.
          - DAC_READ_SEARCH
          # Seeing executables, namespaces and open files of processes: the proof that a sandbox is dead.
          - SYS_PTRACE
          # Entering the host's mount namespace: to unmount leaked network namespaces there, and to run CNI plugins.
          - SYS_ADMIN
          # The kernel asks for it, too, when a mount namespace is entered.
          - SYS_CHROOT
          # CNI plugins that delete links, routes and firewall rules.
          - NET_ADMIN
    volumeMounts:
      - name: config
        mountPath: /etc/unghost
        readOnly: true
      {{- if include "unghost.tokenSecret" . }}
      - name: token
        mountPath: /etc/unghost-token
        readOnly: true
      {{- end }}
      # Everything that is read: the runtime's socket, CNI configuration, kubelet's directories, logs, processes.
      # With HostToContainer, network namespaces that are mounted later are seen as what they are. Kubernetes allows no
      # recursiveReadOnly beside it.
      - name: host
        mountPath: /host
        readOnly: true
        mountPropagation: HostToContainer
      # Corrupt caches are quarantined, leaked leases released.
      - name: cni
        mountPath: /host/var/lib/cni
      # Journal and quarantine. They outlive the pod: what was changed can be undone.
      - name: state
        mountPath: /host/var/lib/unghost
      # The lock against a second agent on the node.
      - name: lock
        mountPath: /host/run/unghost
      {{- if eq .Values.distribution "microk8s" }}
      # Leases and flannel's files of the snap.
      - name: microk8s
        mountPath: /host/var/snap/microk8s/common/var/lib/cni
      {{- end }}
      {{- with .Values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
  {{- if not .test }}
  {{- with .Values.sidecars }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- end }}
volumes:
  - name: config
    configMap:
      name: {{ include "unghost.fullname" . }}-agent{{ .suffix }}
  {{- with include "unghost.tokenSecret" . }}
  - name: token
    secret:
      secretName: {{ . }}
  {{- end }}
  - name: host
    hostPath:
      path: /
  - name: cni
    hostPath:
      path: /var/lib/cni
      type: DirectoryOrCreate
  - name: state
    hostPath:
      path: /var/lib/unghost
      type: DirectoryOrCreate
  - name: lock
    hostPath:
      path: /run/unghost
      type: DirectoryOrCreate
  {{- if eq .Values.distribution "microk8s" }}
  - name: microk8s
    hostPath:
      path: /var/snap/microk8s/common/var/lib/cni
      type: DirectoryOrCreate
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
