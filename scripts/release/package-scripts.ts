import { PACKAGE_UNITS } from "./package-units.ts";

/** The scripts of dpkg and rpm. The units stay disabled; an enabled one stays enabled after an upgrade. */
export interface PackageScripts {
  readonly postinstall: string;
  readonly preremove: string;
  readonly postremove: string;
}

const UNITS = [...PACKAGE_UNITS.keys()];
const AGENT = "unghost-agent.service";
const RELOAD = "if [ -d /run/systemd/system ]; then systemctl --system daemon-reload >/dev/null || true; fi";

/** Like debhelper's for units that are neither enabled nor started. */
export const DEB_SCRIPTS: PackageScripts = {
  postinstall: `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  for unit in ${UNITS.join(" ")}; do
    if deb-systemd-helper debian-installed "$unit"; then
      deb-systemd-helper unmask "$unit" >/dev/null || true
      if deb-systemd-helper --quiet was-enabled "$unit"; then deb-systemd-helper enable "$unit" >/dev/null || true; fi
    fi
    deb-systemd-helper update-state "$unit" >/dev/null || true
  done
  ${RELOAD}
fi
`,
  preremove: `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then deb-systemd-invoke stop ${AGENT} >/dev/null || true; fi
`,
  postremove: `#!/bin/sh
set -e
if [ "$1" = remove ]; then
  ${RELOAD}
fi
if [ "$1" = purge ]; then
  if command -v deb-systemd-helper >/dev/null; then
    for unit in ${UNITS.join(" ")}; do deb-systemd-helper purge "$unit" >/dev/null || true; done
  fi
  # Journal and quarantine: what was healed can be undone until here.
  rm -rf /var/lib/unghost /run/unghost
fi
`,
};

export const RPM_SCRIPTS: PackageScripts = {
  postinstall: `${RELOAD}\n`,
  preremove: `if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then
  systemctl --no-reload disable --now ${UNITS.join(" ")} >/dev/null 2>&1 || true
fi
`,
  postremove: `${RELOAD}\n`,
};
