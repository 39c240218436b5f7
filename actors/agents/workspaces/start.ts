/** Quick start for a new workspace: a code sample per framework and a dotenv block. */
import { readFileSync } from 'node:fs'
import { FRAMEWORKS, type WorkspaceProvisioned } from './protocol.js'

/** Relative to dist/actors/agents/workspaces: the samples are not compiled. */
const SAMPLES = new URL('../../../../actors/agents/workspaces/samples/', import.meta.url)

const samples = new Map<string, string>(
  FRAMEWORKS.map((framework) => [
    framework,
    readFileSync(new URL(`${framework}.txt`, SAMPLES), 'utf8'),
  ]),
)

/** A runnable sample: a client_credentials request and the verification of a token with the JWKS. */
export function startSnippet(framework: string): string {
  return samples.get(framework) ?? samples.get('generic')!
}

/** dotenv lines; without SVC_CLIENT_SECRET for a public application. */
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

/** Unquoted where every dotenv parser and shell reads the value literally, else quoted. */
function dotenvValue(value: string): string {
  if (/^[A-Za-z0-9_.:/@%+,=-]*$/.test(value)) return value
  return value.includes("'") ? `"${value.replace(/["$\\`]/g, '\\$&')}"` : `'${value}'`
}
