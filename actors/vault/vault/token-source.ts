/** What access tokens are got with: the document of a credential. */
import { normalizeHostname } from '../../domain/hostnames.js'
import type { GitHubAppDocument } from '../../domain/vault/secret-documents/github-app.js'
import type { OAuthDocument } from '../../domain/vault/secret-documents/oauth.js'
import type { ServiceAccountDocument } from '../../domain/vault/secret-documents/service-account.js'

const GITHUB_API = 'https://api.github.com'
const GOOGLE_TOKENS = 'https://oauth2.googleapis.com/token'

export type TokenSource =
  | { readonly kind: 'oauth'; readonly document: OAuthDocument }
  | { readonly kind: 'github_app'; readonly document: GitHubAppDocument }
  | { readonly kind: 'gcp_service_account'; readonly document: ServiceAccountDocument }

/** Reads a document that was validated when it was stored. @param scheme the `auth_scheme` of the credential. */
export function readTokenSource(scheme: string, bytes: Uint8Array): TokenSource {
  const document = JSON.parse(Buffer.from(bytes).toString('utf8')) as never
  switch (scheme) {
    case 'github_app':
    case 'gcp_service_account':
      return { kind: scheme, document }
    default:
      return { kind: 'oauth', document }
  }
}

/** The URL to which the request for a token is sent, and the member that has it. */
export function tokenUrlOf({ kind, document }: TokenSource): {
  readonly member: string
  readonly url: string
} {
  switch (kind) {
    case 'oauth':
      return { member: 'token_url', url: document.token_url }
    case 'github_app': {
      const { api_url: api = GITHUB_API, installation_id: id } = document
      const url = `${api.replace(/\/+$/, '')}/app/installations/${id}/access_tokens`
      return { member: 'api_url', url }
    }
    case 'gcp_service_account':
      return { member: 'token_uri', url: document.token_uri ?? GOOGLE_TOKENS }
  }
}

/** True if the tokens come from one of the hosts. */
export const isOnAllowedHost = (source: TokenSource, hosts: readonly string[]): boolean =>
  hosts.includes(normalizeHostname(new URL(tokenUrlOf(source).url).hostname) ?? '')

/** The refresh token with which the next token is got. */
export const refreshTokenOf = (source: TokenSource): string | undefined =>
  source.kind === 'oauth' ? source.document.refresh_token : undefined

/** The document with the refresh token that replaces the last one. */
export function withRefreshToken(bytes: Uint8Array, refreshToken: string): Uint8Array {
  const document = JSON.parse(Buffer.from(bytes).toString('utf8')) as OAuthDocument
  return bytesOf({ ...document, refresh_token: refreshToken })
}

/** The bytes of a document, to be sealed. */
export const bytesOf = (document: OAuthDocument): Uint8Array =>
  new Uint8Array(Buffer.from(JSON.stringify(document), 'utf8'))
