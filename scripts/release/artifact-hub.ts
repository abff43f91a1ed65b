import { createHash } from "node:crypto";
import { stringify } from "yaml";

/** The tag that Artifact Hub reads beside a chart's versions. */
export const ARTIFACT_HUB_TAG = "artifacthub.io";

/**
 * An OCI layout with artifacthub-repo.yml, by which Artifact Hub knows that the operator of a chart's registry is the
 * one who registered it there. Artifact Hub's documentation gives both media types.
 */
export function artifactHubLayout(repositoryId: string): ReadonlyMap<string, Buffer> {
  const files = new Map<string, Buffer>();
  const blob = (mediaType: string, content: Buffer) => {
    const hex = createHash("sha256").update(content).digest("hex");
    files.set(`blobs/sha256/${hex}`, content);
    return { mediaType, digest: `sha256:${hex}`, size: content.length };
  };
  const config = blob("application/vnd.cncf.artifacthub.config.v1+yaml", Buffer.alloc(0));
  const metadata = Buffer.from(stringify({ repositoryID: repositoryId }));
  const layer = {
    ...blob("application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml", metadata),
    annotations: { "org.opencontainers.image.title": "artifacthub-repo.yml" },
  };
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const manifest = blob(mediaType, json({ schemaVersion: 2, mediaType, config, layers: [layer] }));
  files.set("index.json", json({ schemaVersion: 2, manifests: [manifest] }));
  files.set("oci-layout", json({ imageLayoutVersion: "1.0.0" }));
  return files;
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
