/** What access tokens are got with: the document of a credential. */
import { normalizeHostname } from '../../domain/hostnames.js'
import type { OAuthDocument } from '../../domain/vault/secret-documents/oauth.js'

export type TokenSource = { readonly kind: 'oauth'; readonly document: OAuthDocument }

/** Reads a document that was validated when it was stored. @param scheme the `auth_scheme` of the credential. */
export function readTokenSource(_scheme: string, bytes: Uint8Array): TokenSource {
  const document: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'))
  return { kind: 'oauth', document: document as OAuthDocument }
}

/** The URL to which the request for a token is sent, and the member that has it. */
export function tokenUrlOf({ document }: TokenSource): {
  readonly member: string
  readonly url: string
} {
  return { member: 'token_url', url: document.token_url }
}

/** True if the tokens come from one of the hosts. */
export const isOnAllowedHost = (source: TokenSource, hosts: readonly string[]): boolean =>
  hosts.includes(normalizeHostname(new URL(tokenUrlOf(source).url).hostname) ?? '')

/** The document with the refresh token that replaces the last one. */
export function withRefreshToken(bytes: Uint8Array, refreshToken: string): Uint8Array {
  const document = JSON.parse(Buffer.from(bytes).toString('utf8')) as OAuthDocument
  return bytesOf({ ...document, refresh_token: refreshToken })
}

/** The bytes of a document, to be sealed. */
export const bytesOf = (document: OAuthDocument): Uint8Array =>
  new Uint8Array(Buffer.from(JSON.stringify(document), 'utf8'))
