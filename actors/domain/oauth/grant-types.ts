/** The grant types of the token endpoint. A new one is a row here, and one of GRANTS in tokens/grants/issue.ts. */

/** RFC 8693 section 2.1. */
export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
/** The type of an identity assertion, which an exchange can give (draft-ietf-oauth-identity-assertion-authz-grant). */
export const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'
/** RFC 8628 section 3.4. */
export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
/** OpenID Connect CIBA section 10.1. */
export const CIBA = 'urn:openid:params:grant-type:ciba'
/** RFC 7523 section 2.1. */
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
/** OpenID4VCI section 6.1. */
export const PRE_AUTHORIZED_CODE = 'urn:ietf:params:oauth:grant-type:pre-authorized_code'

type Clients = {
  readonly name: string
  /** An application may be registered with it. */
  readonly registrable: boolean
  /** A metadata document may name it. */
  readonly documented: boolean
  /** Clients without authentication may have it. */
  readonly publicClients: boolean
}

// biome-ignore format: a table
const GRANTS = {
  authorization_code: { name: 'authorization_code', registrable: true, documented: true, publicClients: true },
  client_credentials: { name: 'client_credentials', registrable: true, documented: false, publicClients: false },
  refresh_token: { name: 'refresh_token', registrable: true, documented: true, publicClients: true },
  [TOKEN_EXCHANGE]: { name: 'token exchange', registrable: true, documented: false, publicClients: true },
  [DEVICE_CODE]: { name: 'the device grant', registrable: true, documented: true, publicClients: true },
  // OpenID Connect CIBA section 7.1: the client must authenticate.
  [CIBA]: { name: 'CIBA', registrable: true, documented: false, publicClients: false },
  [JWT_BEARER]: { name: 'jwt-bearer', registrable: true, documented: true, publicClients: false },
  [PRE_AUTHORIZED_CODE]: { name: 'pre-authorized codes', registrable: false, documented: false, publicClients: true },
} as const satisfies Readonly<Record<string, Clients>>

export type GrantType = keyof typeof GRANTS

/** In the order in which discovery lists those that are enabled. */
export const GRANT_TYPES = Object.keys(GRANTS) as GrantType[]

/** Which clients may have the grant. Undefined for an unknown grant. */
export function clientsOf(grant: string): Clients | undefined {
  return isGrantType(grant) ? GRANTS[grant] : undefined
}

export const isGrantType = (text: string): text is GrantType => Object.hasOwn(GRANTS, text)

/** True if an application may be registered with the grant. */
export const isRegistrable = (grant: string): boolean => clientsOf(grant)?.registrable === true
