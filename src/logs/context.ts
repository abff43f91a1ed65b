/** Words in lines about a pod's network or sandbox: other programs share many phrases with CNI plugins. */
export const cniContext =
  /pod ?sandbox|(?:for|of|stop) sandbox|sandbox (?:container|[0-9a-f]{8})|plugin type=|networkplugin cni|multus|delegate(?:add|del)|conflist(?:add|del)|(?:add|del)network|cmd(?:add|del)\b|cni (?:add|del|request|network)|failed \((?:add|delete)\)|(?:adding|deleting|removing|add|delete|remove) \S{1,300} (?:from|to) (?:cni )?network \S|(?:adding|deleting) network:|cni\.go|clusterinformation/;

/** The runtime itself is down: then an error about a sandbox has no meaning. */
export const runtimeUnreachable =
  /(?:containerd|crio|dockershim|cri-dockerd|docker|isulad|frakti)\.sock: connect|npipe|runtime service .{0,40}unavailable desc = connection/;
