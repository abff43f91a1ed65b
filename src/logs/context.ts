/** Words in lines about a pod's network or sandbox: other programs share many phrases with CNI plugins. */
export const cniContext =
  /pod ?sandbox|(?:for|of|stop) sandbox|sandbox (?:container|[0-9a-f]{8})|plugin type=|networkplugin cni|multus|delegate(?:add|del)|conflist(?:add|del)|(?:add|del)network|cmd(?:add|del)\b|cni (?:add|del|request|network)|failed \((?:add|delete)\)|(?:adding|deleting|removing|add|delete|remove) \S{1,300} (?:from|to) (?:cni )?network \S|(?:adding|deleting) network:|cni\.go|clusterinformation/;

/** The runtime itself is down: then an error about a sandbox has no meaning. */
export const runtimeUnreachable =
  /(?:containerd|crio|dockershim|cri-dockerd|docker|isulad|frakti)\.sock: connect|npipe|runtime service .{0,40}unavailable desc = connection/;

/** Programs that run containers without Kubernetes, and write of them in the same words. */
const otherWriter =
  /(?:^|[\s$])(?:docker|dockerd(?:\[\d{1,9}\])?|podman|nerdctl|buildah|docker-compose|compose|swarm): |error response from daemon|namespace=moby|module=libcontainerd|\/docker\/containerd\/|\bnetavark\b|\blibnetwork\b/;
const ofPod =
  /\bpods?\b|pod_?sandbox|failed(?:create|kill)\w|kube(?:let|rnetes|pods|ctl)|k8s[._]|\bcri\b|crictl|cri-dockerd|dockershim|networkplugin|runtime service|[iwef]\d{4} \d\d:\d\d:\d\d\.\d/;

/** Whether a text from normalise() is another program's, about its own containers: it names no pod, and no program that has pods. */
export function isOfOtherProgram(text: string): boolean {
  return otherWriter.test(text) && !ofPod.test(text);
}
