/**
 * An agent: it registers in a tenant, gets access tokens with its key, and calls an API with a credential of the vault
 * that it never sees.
 *
 *     BASE=http://localhost:8080 TENANT_ID=... node agent.mjs register
 *     BASE=http://localhost:8080 TENANT_ID=... CREDENTIAL_ID=... API_URL=https://api.example.com/ node agent.mjs call
 */
import { readFile, writeFile } from 'node:fs/promises'
import {
  agentSession,
  createAgentKey,
  egressFetch,
  httpClient,
  openAgentKey,
  readMetadata,
  registerAgent,
} from '@svc/client'

const {
  BASE = 'http://localhost:8080',
  TENANT_ID,
  CREDENTIAL_ID,
  API_URL,
  KEY_FILE = 'agent-key.pem',
} = process.env
const http = httpClient(BASE)

async function register() {
  const key = createAgentKey()
  // Before the registration: a lost answer must not lose the key.
  await writeFile(KEY_FILE, key.exportPem(), { mode: 0o600, flag: 'wx' })
  const { agentId } = await registerAgent({ http, key, name: 'Example agent', tenantId: TENANT_ID })
  console.log(agentId)
}

async function call() {
  const key = openAgentKey(await readFile(KEY_FILE, 'utf8'))
  const { issuer } = await readMetadata(http)
  // Tokens are fetched and renewed as they are needed.
  const session = agentSession({ http, key, issuer, tenantId: TENANT_ID, scope: 'vault:read' })
  const fetch = egressFetch({
    baseUrl: BASE,
    credentialId: CREDENTIAL_ID,
    token: async () => (await session.token()).accessToken,
  })
  const response = await fetch(API_URL, { headers: { accept: 'application/json' } })
  console.log(response.status, await response.text())
}

try {
  await (process.argv[2] === 'register' ? register() : call())
} finally {
  await http.close()
}
