// Calls a plan, then builds a dataset and follows its events: node client.js ADDRESS TOKEN_FILE
import { readFileSync } from "node:fs";

const [address, tokenFile] = process.argv.slice(2);
const headers = { "Authorization": "Bearer " + readFileSync(tokenFile!, "utf8").trim(), "Content-Type": "application/json" };

async function call(path: string, body?: object): Promise<Response> {
  const answer = await fetch(address + path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return answer;
}

const answer = await (await call("/v1/plans/feed/run", { user_id: 7 })).json() as { candidates: { id: number }[] };
console.log("posts:", ...answer.candidates.map((row) => row.id));

const topic = { name: "topic", column_type: "sampler", sampler_type: "category", params: { values: ["tea", "rivers"] } };
const job = await (await call("/v1/datasets", { config: { columns: [topic] }, rows: 100, demo: true })).json() as { run: string };
let text = "";
for await (const chunk of (await call(`/v1/runs/${job.run}/events`)).body!.pipeThrough(new TextDecoderStream())) {
  const lines = (text + chunk).split("\n");
  text = lines.pop()!;
  for (const line of lines) if (line.startsWith("event:")) console.log("event:", line.slice(6).trim());
}
