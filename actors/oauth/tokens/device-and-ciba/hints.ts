/** Resolves the hint of a CIBA request to a user (CIBA Core 1.0 section 7.1, RFC 9493 for `sub_id`). */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import { findSignIn } from '../../../../storage/identity/sign-ins.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { readIdTokenHint } from '../authorization/id-token-hint.js'
import type { Documents } from '../../../platform/outbound-http/documents.js'
import type { SigningKeysProtocol } from '../../signing-keys/protocol.js'
import { isSignedByApplication } from '../clients/client-keys.js'
import { hasType, isTime, readJws } from '../../../platform/jose/external-jws.js'
import type { OAuthRefused } from '../protocol.js'
import { refuse } from '../refusals.js'
import type { Hint } from './ciba-parameters.js'
import type { CibaRefused } from './protocol.js'
import { soughtEmail } from '../../../domain/email.js'

/** An explicit type prevents confusion with other JWTs of the application (RFC 8725 section 3.11). */
const HINT_TOKEN_TYPE = 'login-hint+jwt'
const EMAIL_CHARACTERS_MAX = 320

export type HintNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly issuer: string
  readonly keys: ActorRef<SigningKeysProtocol>
  /** Fetches the `jwks_uri` of applications. */
  readonly documents: Pick<Documents, 'fetch'>
}

/** `sub` is null if the tenant has no such user. */
type HintedSubject = { readonly tag: 'subject'; readonly sub: string | null }

type Named = { readonly email: string } | { readonly sub: string }

export async function subjectOf(
  needs: HintNeeds,
  { kind, value }: Hint,
  client: AuthorizingClientRow,
  context: MessageContext,
): Promise<HintedSubject | CibaRefused | OAuthRefused> {
  if (kind === 'id_token_hint') {
    const hint = await readIdTokenHint(needs.keys, needs.issuer, value, context)
    // Only an ID token of this application: another application's token may be stolen.
    return hint?.clientId === client.id && hint.tenantId === client.tenantId
      ? { tag: 'subject', sub: hint.subject }
      : refuse(
          'invalid_request',
          'id_token_hint was not issued to this application',
          'parameter_invalid',
        )
  }
  if (kind === 'login_hint') return lookUp(needs, readLoginHint(value), client, context)
  const read = await readHintToken(needs, value, client)
  return 'tag' in read ? read : lookUp(needs, read, client, context)
}

/** A value with @ is an e-mail address, any other a `sub` of the tenant. */
const readLoginHint = (value: string): Named =>
  value.includes('@') ? { email: value } : { sub: value }

/** Takes the same steps for unknown users. A `sub` needs no look-up: it is the key of the inbox. */
async function lookUp(
  { database }: HintNeeds,
  named: Named,
  { tenantId }: AuthorizingClientRow,
  { signal }: MessageContext,
): Promise<HintedSubject> {
  if ('sub' in named) return { tag: 'subject', sub: storable(named.sub) }
  const email = soughtEmail(named.email.trim())
  if (email === undefined) return { tag: 'subject', sub: null }
  // Accounts belong to no tenant, so the look-up crosses tenants.
  const found = await database.system((tx) => findSignIn(tx, tenantId, email), {
    pool: 'identity',
    signal,
  })
  return { tag: 'subject', sub: found?.sub ?? null }
}

/** Null for a value that cannot identify a user, or that PostgreSQL cannot store. */
function storable(text: string): string | null {
  return text.length <= EMAIL_CHARACTERS_MAX && !/[\p{Cc}\p{Cs}]/u.test(text) ? text : null
}

/**
 * Reads a JWT signed with a key of the application: `iss` is the application, `aud` the issuer, `exp`
 * is in the future, and `sub_id` has the format `email` or `iss_sub`.
 */
async function readHintToken(
  { clock, issuer, documents }: HintNeeds,
  token: string,
  client: AuthorizingClientRow,
): Promise<Named | CibaRefused | OAuthRefused> {
  const invalid = refuse(
    'invalid_request',
    'login_hint_token is not valid for this application',
    'parameter_invalid',
  )
  const jws = readJws(token)
  if (jws === undefined || !hasType(jws, HINT_TOKEN_TYPE)) return invalid
  const { iss, aud, exp, sub_id: id } = jws.claims
  if (iss !== client.id || aud !== issuer || !isTime(exp)) return invalid
  const named = readSubjectIdentifier(id, issuer)
  if (named === null || !(await isSignedByApplication(documents, client, jws))) return invalid
  if (exp > clock.nowSecs()) return named
  const description = 'login_hint_token has expired'
  return { tag: 'ciba_refused', error: 'expired_login_hint_token', description }
}

/** RFC 9493 sections 3.2.2 and 3.2.3. */
function readSubjectIdentifier(id: unknown, issuer: string): Named | null {
  if (typeof id !== 'object' || id === null) return null
  const { format, email, iss, sub } = id as Readonly<Record<string, unknown>>
  if (format === 'email' && typeof email === 'string' && email !== '') return { email }
  return format === 'iss_sub' && iss === issuer && typeof sub === 'string' && sub !== ''
    ? { sub }
    : null
}
