/** The types of security events of streams (SSF 1.0, CAEP 1.0, RISC 1.0), and how they are delivered. */

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/'
const RISC = 'https://schemas.openid.net/secevent/risc/event-type/'
const SSF = 'https://schemas.openid.net/secevent/ssf/event-type/'

export const SESSION_REVOKED = `${CAEP}session-revoked`
export const SESSION_ESTABLISHED = `${CAEP}session-established`
export const CREDENTIAL_CHANGE = `${CAEP}credential-change`
export const TOKEN_CLAIMS_CHANGE = `${CAEP}token-claims-change`
export const RISK_LEVEL_CHANGE = `${CAEP}risk-level-change`
export const ACCOUNT_DISABLED = `${RISC}account-disabled`
export const ACCOUNT_ENABLED = `${RISC}account-enabled`
export const ACCOUNT_PURGED = `${RISC}account-purged`
export const CREDENTIAL_CHANGE_REQUIRED = `${RISC}account-credential-change-required`
/** Received, not sent. RISC 1.0 has the second for older transmitters. */
export const CREDENTIAL_COMPROMISE = `${RISC}credential-compromise`
export const SESSIONS_REVOKED = `${RISC}sessions-revoked`
export const RECOVERY_INFORMATION_CHANGED = `${RISC}recovery-information-changed`

/** What a stream may have. */
export const EVENTS_SUPPORTED: readonly string[] = [
  SESSION_REVOKED,
  SESSION_ESTABLISHED,
  CREDENTIAL_CHANGE,
  TOKEN_CLAIMS_CHANGE,
  RISK_LEVEL_CHANGE,
  ACCOUNT_DISABLED,
  ACCOUNT_ENABLED,
  ACCOUNT_PURGED,
  CREDENTIAL_CHANGE_REQUIRED,
  RECOVERY_INFORMATION_CHANGED,
]

/** Events about a stream. Every stream has them. */
export const VERIFICATION = `${SSF}verification`
export const STREAM_UPDATED = `${SSF}stream-updated`

/** RFC 8935: the service posts each event to the receiver. */
export const PUSH = 'urn:ietf:rfc:8935'
/** RFC 8936: the receiver polls. */
export const POLL = 'urn:ietf:rfc:8936'
export const DELIVERY_METHODS: readonly string[] = [PUSH, POLL]

export const STREAM_STATUSES = ['enabled', 'paused', 'disabled'] as const
export type StreamStatus = (typeof STREAM_STATUSES)[number]

/** The members of a complex subject that a receiver must understand. */
export const CRITICAL_SUBJECT_MEMBERS = ['tenant', 'user', 'session'] as const

/** An error code of RFC 8935 section 2.4, and the first fault of a received token. */
export type EventRefused = {
  readonly tag: 'refused'
  readonly err: 'invalid_request' | 'invalid_key' | 'invalid_issuer' | 'invalid_audience'
  readonly detail: string
}
