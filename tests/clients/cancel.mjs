// A client that cancels a call: `node cancel.mjs v1|v2-legacy|v2-auto stdio|http TARGET TOOL_ARGUMENTS`.
// It calls execute_query, aborts when a line comes in, asks again, prints that answer and leaves.
import process from 'node:process';
import { createInterface } from 'node:readline';

const [kind, transport, target, endless, count] = process.argv.slice(2);
const info = { name: 'canceller', version: '1' };

async function connect() {
  const [module, options] =
    kind === 'v1'
      ? ['@modelcontextprotocol/sdk/client', {}]
      : ['@modelcontextprotocol/client', { versionNegotiation: { mode: kind === 'v2-auto' ? 'auto' : 'legacy' } }];
  const { Client } = await import(kind === 'v1' ? `${module}/index.js` : module);
  const client = new Client(info, options);
  await client.connect(await transportOf(module));
  return client;
}

async function transportOf(module) {
  if (transport === 'http') {
    const { StreamableHTTPClientTransport } = await import(kind === 'v1' ? `${module}/streamableHttp.js` : module);
    return new StreamableHTTPClientTransport(new URL(target));
  }
  const { StdioClientTransport } = await import(`${module}/stdio${kind === 'v1' ? '.js' : ''}`);
  const [command, ...args] = JSON.parse(target);
  return new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' });
}

function query(client, sql, options) {
  const params = { name: 'execute_query', arguments: { sql } };
  return kind === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

const client = await connect();
const abort = new AbortController();
createInterface({ input: process.stdin }).once('line', () => abort.abort('enough'));
try {
  await query(client, endless, { signal: abort.signal });
  console.log('NOT CANCELLED');
} catch (error) {
  console.log('cancelled');
}
const answer = await query(client, count);
console.log(JSON.stringify(answer.structuredContent.rows));
await client.close();
process.exit(0);
