import { UNGHOST } from "./unghost.ts";

/** Asks an agent for its health until it answers, ends it, and prints its exit code. */
export const AGENT_UNTIL_STOPPED = `
${UNGHOST} agent --no-kube --listen 127.0.0.1:20258 --scan-every 5s >/dev/null 2>&1 &
agent=$!
python3 - <<'PROGRAM'
import time, urllib.request
answers = 0
while answers < 20:
    try: answers += urllib.request.urlopen("http://127.0.0.1:20258/healthz", timeout=5).status == 200
    except OSError: pass
    time.sleep(0.2)
PROGRAM
kill -TERM $agent
wait $agent
echo "exit code $?"`;
