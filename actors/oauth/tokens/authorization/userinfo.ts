/** The UserInfo endpoint (OpenID Connect Core section 5.3, RFC 6750). */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Database } from '../../../../storage/platform/sql.js'
import {
  type ClaimedGrant,
  findClaimedGrant,
} from '../../../../storage/oauth/authorization-codes.js'
import { findTokenClient } from '../../../../storage/oauth/applications.js'
import { findPerson } from '../../../../storage/identity/tenant-users.js'
import { isUuid } from '../../../domain/ids.js'
import { claimsOf } from '../../../domain/person-claims.js'
import type { SigningKeysProtocol } from '../../signing-keys/protocol.js'
import { namesOtherTenant, type TenantsProtocol } from '../../../identity/users/tenants/protocol.js'
import { readForm } from '../form.js'
import { claimsWithin } from '../issue/effective-scopes.js'
import type { TokensProtocol, Unauthenticated } from '../protocol.js'
import type {
  NoToken,
  SignedUserinfo,
  TokenMisplaced,
  Userinfo,
  UserinfoRefused,
  UserinfoRequest,
} from './protocol.js'

const USERINFO_TYPE = 'userinfo+jwt'
const CREDENTIALS = /^(bearer|dpop) +([A-Za-z0-9._~+/-]+=*)$/i

type UserinfoNeeds = {
  readonly database: Database
  readonly tokens: ActorRef<TokensProtocol>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly issuer: string
}

/** RFC 6750 section 3.1: a malformed token gets the error of an invalid one. */
const MALFORMED: Unauthenticated = {
  isMalformed: true,
  tag: 'refused',
  error: 'unauthorized',
  description: 'the Authorization header contains no access token',
}

/** A resource server that got the token must not learn with it who the user is. */
const FOR_ANOTHER: Unauthenticated = {
  tag: 'refused',
  error: 'unauthorized',
  description: 'the token is for another audience than this service or its client',
}

// Also the operation `postUserinfo`.
export async function getUserinfo(
  { database, tokens, tenants, keys, issuer }: UserinfoNeeds,
  { authorization, form: fields, host, ...request }: UserinfoRequest,
  context: MessageContext,
): Promise<
  Userinfo | SignedUserinfo | NoToken | TokenMisplaced | UserinfoRefused | Unauthenticated
> {
  const form = readForm(fields)
  const inBody = 'repeated' in form ? null : form.get('access_token')
  if ('repeated' in form || (inBody !== null && authorization !== null))
    return refused('invalid_request', 'the access token must be sent once, by one method')
  const [, scheme = 'bearer', inHeader] = CREDENTIALS.exec(authorization ?? '') ?? []
  const token = inBody ?? inHeader
  if (token === undefined) return authorization === null ? { tag: 'no_token' } : MALFORMED
  const verified = await tokens.authenticate(
    {
      ...request,
      token,
      scheme: scheme.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer',
      // The audience of a client's token is the client's own API, so it is checked below.
      anyAudience: true,
    },
    context,
  )
  if (verified.tag === 'refused') return verified
  const { principal } = verified
  const { tenantId, subject, subjectType, clientId, scopes, grantId } = principal
  const there = await tenants.resolve({ host }, context)
  if (namesOtherTenant(there, tenantId)) return { tag: 'misplaced', client: { clientId, tenantId } }
  // Accounts belong to no tenant, so the look-up crosses tenants.
  const [client, facts, grant] = await database.system(
    async (tx) => [
      await findTokenClient(tx, tenantId, { clientId, isId: isUuid(clientId) }),
      await findPerson(tx, tenantId, subject),
      grantId == null ? undefined : await findClaimedGrant(tx, tenantId, grantId),
    ],
    context,
  )
  if (
    ![issuer, client?.audience].some((own) => own !== undefined && principal.audience.includes(own))
  )
    return FOR_ANOTHER
  if (subjectType !== 'human' || !scopes.includes('openid'))
    return {
      ...refused('insufficient_scope', 'a user token with the scope openid is needed'),
      client: { clientId, tenantId },
    }
  if (facts === undefined)
    return { tag: 'refused', error: 'token_revoked', description: 'the user is not active' }
  const named = grant === undefined ? [] : namedIn(grant, scopes)
  const claims = { ...claimsOf(facts, scopes, named), sub: subject, tenant_id: tenantId }
  const algorithm = client?.userinfoSignedResponseAlg ?? null
  if (algorithm === null) return { tag: 'userinfo', claims }
  // A type that is not the ID token's: neither can stand for the other.
  const jwt = { iss: issuer, aud: clientId, ...claims }
  const signed = await keys.sign({ typ: USERINFO_TYPE, claims: JSON.stringify(jwt), algorithm })
  if (signed.tag !== 'signed') throw new Error('no signing key is available')
  return { tag: 'userinfo_signed', jwt: signed.token }
}

/**
 * Individually requested claims are returned to a token with all scopes of the grant. A downscoped
 * token, which may have been passed on (RFC 8693), gets only the claims of its scopes.
 */
function namedIn({ claims, granted, held }: ClaimedGrant, scopes: readonly string[]) {
  const whole = granted.every((scope) => !held.includes(scope) || scopes.includes(scope))
  return whole ? claimsWithin(claims.userinfo, held) : []
}

function refused(error: UserinfoRefused['error'], description: string): UserinfoRefused {
  return { tag: 'userinfo_refused', error, description }
}
