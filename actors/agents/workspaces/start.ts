/** What an agent is handed to start with: a sample for its framework and the environment it reads. */
import { readFileSync } from 'node:fs'
import { FRAMEWORKS, type WorkspaceProvisioned } from './protocol.js'

/** From dist/actors/workspaces back to the texts beside the source. */
const SAMPLES = new URL('../../../../actors/agents/workspaces/samples/', import.meta.url)

const samples = new Map<string, string>(
  FRAMEWORKS.map((framework) => [
    framework,
    readFileSync(new URL(`${framework}.txt`, SAMPLES), 'utf8'),
  ]),
)

/** Runnable text: a client_credentials request, and the check of a bearer token by the key set. */
export function startSnippet(framework: string): string {
  return samples.get(framework) ?? samples.get('generic')!
}

/** dotenv lines (decisions.md 2.2). The secret only where there is one. */
export function envBlock({
  issuer,
  tenant,
  application,
}: Pick<WorkspaceProvisioned, 'issuer' | 'tenant' | 'application'>): string {
  const { clientId, clientSecret, audience, redirectUris } = application
  const lines: [name: string, value: string | null][] = [
    ['SVC_ISSUER', issuer],
    ['SVC_CLIENT_ID', clientId],
    ['SVC_CLIENT_SECRET', clientSecret],
    ['SVC_TENANT_ID', tenant.id],
    ['SVC_TENANT_SLUG', tenant.slug],
    ['SVC_AUDIENCE', audience],
    ['SVC_REDIRECT_URI', redirectUris[0] ?? ''],
  ]
  return lines
    .flatMap(([name, value]) => (value === null ? [] : [`${name}=${dotenvValue(value)}\n`]))
    .join('')
}

/** Plain where every reader of such files, shells included, takes it literally; else in quotes. */
function dotenvValue(value: string): string {
  if (/^[A-Za-z0-9_.:/@%+,=-]*$/.test(value)) return value
  return value.includes("'") ? `"${value.replace(/["$\\`]/g, '\\$&')}"` : `'${value}'`
}
