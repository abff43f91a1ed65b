import { createSecureContext } from "node:tls";
import { changingFile } from "./changing-file.ts";

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateFiles {
  read(): Promise<Certificate>;
  hasChanged(): Promise<boolean>;
}

export function certificateFiles({ certFile, keyFile }: TlsFiles): CertificateFiles {
  const certificate = changingFile("certificate", certFile);
  const privateKey = changingFile("private key", keyFile);
  return {
    read: async () => {
      const pair = { cert: await certificate.read(), key: await privateKey.read() };
      try {
        createSecureContext(pair);
      } catch (error) {
        const reason = (error as Error).message;
        throw new Error(`the certificate ${certFile} and the key ${keyFile} cannot be used together: ${reason}.`, {
          cause: error,
        });
      }
      return pair;
    },
    hasChanged: async () => (await certificate.hasChanged()) || (await privateKey.hasChanged()),
  };
}
