/** What the egress proxy and the clients of it share. */

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const
export type ProxyMethod = (typeof METHODS)[number]

/** Schemes whose secret is a JSON document with a key, which signs each request (secret-documents.ts). */
export const SIGNED_SCHEMES = ['aws_sigv4', 'hmac', 'http_signature'] as const
export type SignedScheme = (typeof SIGNED_SCHEMES)[number]

/** Schemes whose secret is a JSON document, with which the service gets access tokens. */
export const TOKEN_SCHEMES = [
  'oauth2_client_credentials',
  'oauth2_refresh',
  'github_app',
  'gcp_service_account',
] as const
export type TokenScheme = (typeof TOKEN_SCHEMES)[number]

/** An `auth_scheme` that sends the secret. The caller must not send the header or parameter of this name. */
export type SentScheme = {
  /** As it is stored. */
  readonly text: string
  readonly name: string
} & (
  | { readonly kind: 'field'; readonly prefix: string }
  /** The secret is `user:password`, and sent in base64. */
  | { readonly kind: 'basic'; readonly prefix: string }
  | { readonly kind: 'query' }
  /** An access token is sent, which the service gets with the secret. */
  | { readonly kind: 'token'; readonly prefix: string }
)

/** An `auth_scheme`, read. */
export type AuthScheme =
  | SentScheme
  /** The secret is not sent. What the caller sends as a signature is replaced. */
  | { readonly kind: 'signed'; readonly text: SignedScheme }

/** Hop-by-hop fields and fields of the proxy, which cannot hold a secret (RFC 9110 section 7.6.1). */
const RESERVED_FIELDS =
  /^(?:host|content-length|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|forwarded|via|proxy-.*|x-forwarded-.*|x-svc-.*)$/

/** `shown`: as documents write it. A new scheme is a row. A new kind is a case of each `switch` over kinds too. */
type Row = { shown: string; form: RegExp; read: (parameter: string) => AuthScheme | null }

// biome-ignore format: a table
const SCHEMES: readonly Row[] = [
  { shown: 'bearer', form: /^bearer$/, read: () => ({ text: 'bearer', kind: 'field', name: 'authorization', prefix: 'Bearer ' }) },
  { shown: 'basic', form: /^basic$/, read: () => ({ text: 'basic', kind: 'basic', name: 'authorization', prefix: 'Basic ' }) },
  // RFC 9110 section 5.6.2.
  { shown: 'header:<name>', form: /^header:([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64})$/, read: (name) => field(name.toLowerCase()) },
  { shown: 'query:<key>', form: /^query:([A-Za-z0-9._~[\]-]{1,64})$/, read: (name) => ({ text: `query:${name}`, kind: 'query', name }) },
  ...SIGNED_SCHEMES.map((text): Row => ({ shown: text, form: new RegExp(`^${text}$`), read: () => ({ text, kind: 'signed' }) })),
  ...TOKEN_SCHEMES.map((text): Row => ({ shown: text, form: new RegExp(`^${text}$`), read: () => ({ text, kind: 'token', name: 'authorization', prefix: 'Bearer ' }) })),
]

export const isReservedField = (name: string): boolean => RESERVED_FIELDS.test(name)

const field = (name: string): AuthScheme | null =>
  isReservedField(name) ? null : { text: `header:${name}`, kind: 'field', name, prefix: '' }

export const AUTH_SCHEMES = SCHEMES.map(({ shown }) => shown)
export const ANY_AUTH_SCHEME = AUTH_SCHEMES.join(', ').replace(/, ([^,]+)$/, ' or $1')

/** True if the service gets access tokens with the secret. */
export const isTokenScheme = (text: string): text is TokenScheme =>
  TOKEN_SCHEMES.some((scheme) => scheme === text)

/** The credential whose access token a call sends: the credential itself, or its `token_of`. Null: the call sends a secret. */
export const tokenSourceOf = (row: {
  readonly id: string
  readonly tokenOf: string | null
  readonly authScheme: string
}): string | null => row.tokenOf ?? (isTokenScheme(row.authScheme) ? row.id : null)

/** Null for `none`, and for every other text that is no scheme. */
export function readAuthScheme(text: string): AuthScheme | null {
  for (const { form, read } of SCHEMES) {
    const found = form.exec(text)
    if (found !== null) return read(found[1] ?? '')
  }
  return null
}
