/** The secret of an oauth2 credential: a JSON document (docs/reference/vault.md). */

export type OAuthSecret = {
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string | null
  readonly refreshToken: string | null
  readonly scope: string | null
}

type Stored = {
  token_url: string
  client_id: string
  client_secret?: string
  refresh_token?: string
  scope?: string
}

/** Parses a document that was validated when it was stored. */
export function readOAuthSecret(bytes: Uint8Array): OAuthSecret {
  const stored = JSON.parse(Buffer.from(bytes).toString('utf8')) as Stored
  return {
    tokenUrl: stored.token_url,
    clientId: stored.client_id,
    clientSecret: stored.client_secret ?? null,
    refreshToken: stored.refresh_token ?? null,
    scope: stored.scope ?? null,
  }
}

/** The document with the new refresh token. */
export function withRefreshToken(bytes: Uint8Array, refreshToken: string): Uint8Array {
  const stored = JSON.parse(Buffer.from(bytes).toString('utf8')) as Stored
  return new Uint8Array(
    Buffer.from(JSON.stringify({ ...stored, refresh_token: refreshToken }), 'utf8'),
  )
}
