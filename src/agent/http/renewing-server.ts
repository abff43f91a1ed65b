import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { CertificateFiles } from "./certificate.ts";
import { closeServer, createHttpServer, listenOn } from "./http-server.ts";
import type { ListenAddress } from "./listen-address.ts";

export interface ServerPlan {
  readonly where: ListenAddress;
  readonly handler: RequestListener;
  readonly certificate: CertificateFiles;
  readonly renewEveryMs: number;
  readonly warn: (message: string, detail: string) => void;
}

export interface Listening {
  readonly bound: AddressInfo;
  close(): Promise<void>;
}

/**
 * An HTTPS server that reloads its certificate. Bun cannot replace the certificate of a running server, so another
 * server replaces it on the same port. While the new files are invalid the old certificate stays.
 */
export async function listenWithRenewal(plan: ServerPlan): Promise<Listening> {
  let server = createHttpServer(plan.handler, await plan.certificate.read());
  const bound = await listenOn(server, plan.where);
  let reported: string | undefined;
  let closing = false;
  let renewing = Promise.resolve();
  let timer = setTimeout(tick, plan.renewEveryMs).unref();

  function tick(): void {
    renewing = renew().then(
      () => complain(undefined),
      (error: unknown) => complain((error as Error).message),
    );
  }

  async function renew(): Promise<void> {
    if (server.listening && !(await plan.certificate.hasChanged())) return;
    const next = createHttpServer(plan.handler, await plan.certificate.read());
    const previous = closeServer(server);
    server = next;
    await listenOn(next, { host: plan.where.host, port: bound.port });
    await previous;
  }

  function complain(problem: string | undefined): void {
    if (problem !== undefined && problem !== reported)
      plan.warn("renewing the certificate failed; the previous one stays active", problem);
    reported = problem;
    if (!closing) timer = setTimeout(tick, plan.renewEveryMs).unref();
  }

  return {
    bound,
    close: async () => {
      closing = true;
      clearTimeout(timer);
      await renewing;
      await closeServer(server);
    },
  };
}
