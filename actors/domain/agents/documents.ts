/**
 * The documents that an agent of this service publishes as a client of other services: client metadata (Client ID
 * Metadata Documents), key set (RFC 7517) and agent card (A2A). See docs/guides/agents/agent-documents.md.
 */
import { ECDH } from 'node:crypto'

/** Largest client metadata document, in bytes: other services read no more. */
export const CLIENT_DOCUMENT_BYTES_MAX = 5_120
const A2A_VERSION = '0.3.0'

type Members = Readonly<Record<string, unknown>>

type AgentSkill = {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
}

/** The members that an agent sets itself. */
export type AgentProfile = {
  readonly redirect_uris?: readonly string[] | undefined
  readonly client_uri?: string | undefined
  readonly skills?: readonly AgentSkill[] | undefined
}

type Shown = { readonly id: string; readonly name: string; readonly profile: AgentProfile }
type WithKeys = {
  /** The active keys, raw in hexadecimal. */
  readonly keys: readonly {
    readonly fingerprint: string
    readonly algorithm: 'ed25519' | 'es256'
    readonly publicKey: string
  }[]
}

export function agentDocumentUrl(issuer: string, agentId: string, name: string): string {
  return `${issuer}/agents/${agentId}/${name}.json`
}

export function agentClientDocument(issuer: string, { id, name, profile }: Shown): Members {
  return {
    client_id: agentDocumentUrl(issuer, id, 'client'),
    client_name: name,
    ...(profile.client_uri === undefined ? {} : { client_uri: profile.client_uri }),
    redirect_uris: profile.redirect_uris ?? [],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'private_key_jwt',
    jwks_uri: agentDocumentUrl(issuer, id, 'jwks'),
  }
}

export function agentKeySet({ keys }: WithKeys): {
  readonly keys: readonly Members[]
} {
  return {
    keys: keys.map(({ fingerprint, algorithm, publicKey }) => ({
      ...agentJwk(algorithm, Buffer.from(publicKey, 'hex')),
      kid: fingerprint,
      use: 'sig',
      alg: algorithm === 'ed25519' ? 'EdDSA' : 'ES256',
    })),
  }
}

export function agentCard(issuer: string, { id, name, profile }: Shown): Members {
  return {
    protocolVersion: A2A_VERSION,
    name,
    description: `The agent ${name}, registered at ${new URL(issuer).host}.`,
    url: profile.client_uri ?? agentDocumentUrl(issuer, id, 'agent-card'),
    version: '1',
    capabilities: {},
    defaultInputModes: ['application/json', 'text/plain'],
    defaultOutputModes: ['application/json', 'text/plain'],
    skills: profile.skills ?? [],
    provider: { organization: new URL(issuer).host, url: issuer },
  }
}

/** The raw key of an agent as a JWK. Stored P-256 points are compressed. */
export function agentJwk(algorithm: 'ed25519' | 'es256', raw: Buffer): Record<string, string> {
  if (algorithm === 'ed25519') return { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') }
  const point = ECDH.convertKey(raw, 'prime256v1', undefined, undefined, 'uncompressed') as Buffer
  return {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  }
}
