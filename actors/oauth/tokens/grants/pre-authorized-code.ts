/**
 * The pre-authorized code grant (OpenID4VCI section 6): a wallet, known or not, redeems the code of a credential
 * offer once. The token only requests the credential of the offer.
 */
import type { GrantNeeds } from '../issue/user-tokens.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  findOfferByCode,
  type PresentedOffer,
  redeemPreAuthorizedCode,
} from '../../../../storage/oauth/credential-offers.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import { isTxCode } from '../../../domain/credentials/offer-secrets.js'
import { ANONYMOUS_CLIENT, CREDENTIAL_DETAILS_TYPE } from '../../../domain/credentials/catalogue.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { Client } from '../clients/clients.js'
import { type OAuthForm, readScope } from '../form.js'
import type { AccessGrant } from '../issue/access-token.js'
import { readRequestedAudience, spelledAs } from '../issue/audience.js'
import { issuedEvent } from '../issue/issued-event.js'
import { accessAlone } from '../issue/token-signer.js'
import { PRE_AUTHORIZED_CODE } from '../../../domain/oauth/grant-types.js'
import type { Issued, OAuthRefused } from '../protocol.js'
import type { RefreshProof } from './refresh-token.js'
import { refuse } from '../refusals.js'
import { inTenant } from '../../../platform/in-tenant.js'

/** Upper limit of the lifetime: a wallet requests its credential immediately. */
const LIFETIME_SECS_MAX = 300
const CODE_CHARACTERS_MAX = 128
const TX_CODE_CHARACTERS_MAX = 64
const DETAILS_CHARACTERS_MAX = 8192

type Details = readonly Readonly<Record<string, unknown>>[]

/** @param client null for a wallet that the service does not know. */
export async function grantPreAuthorized(
  needs: GrantNeeds,
  client: Client | null,
  form: OAuthForm,
  { jkt }: Pick<RefreshProof, 'jkt'>,
  context: MessageContext,
): Promise<Issued | OAuthRefused> {
  const { database, clock, random } = needs
  if (client?.kind === 'agent')
    return refuse(
      'unauthorized_client',
      'an agent redeems this code without a client_id',
      'grant_not_allowed',
    )
  const code = form.get('pre-authorized_code')
  if (code === null)
    return refuse('invalid_request', 'pre-authorized_code is missing', 'parameter_missing')
  const unknown = refuse(
    'invalid_grant',
    'the pre-authorized_code is unknown, expired or was used',
    'code_unknown',
  )
  if (code.length > CODE_CHARACTERS_MAX) return unknown
  // The tenant is unknown until the code is found, so the look-up crosses tenants.
  const offer = await database.system((tx) => findOfferByCode(tx, sha256(code)), context)
  if (offer === undefined || offer.grantType !== 'pre-authorized_code') return unknown
  if (client !== null && client.row.tenantId !== offer.tenantId) return unknown
  const txCode = form.get('tx_code')
  if (offer.txCodeSha256 !== null && txCode === null)
    return refuse('invalid_request', 'this offer needs a tx_code', 'parameter_missing')
  if (offer.txCodeSha256 === null && txCode !== null)
    return refuse('invalid_request', 'this offer has no tx_code', 'parameter_invalid')
  if (offer.status !== 'offered' || offer.expiresAt <= clock.now() || !offer.standing)
    return unknown
  const details = readAsked(needs, offer, form)
  if (details !== null && 'tag' in details) return details
  const { tenantId, id } = offer
  if (!hasRightTxCode(offer, txCode)) {
    const wrong = { tenantId, id, right: false, tokenId: random.uuid(), now: clock.now() }
    // Ignores the request's abort signal: a client that disconnects must not get a free guess.
    await database.tenant(tenantId, (tx) => redeemPreAuthorizedCode(tx, wrong))
    return refuse('invalid_grant', 'the tx_code is wrong', 'tx_code_wrong')
  }
  return redeem(
    needs,
    offer,
    { clientId: client?.row.id ?? ANONYMOUS_CLIENT, jkt, details },
    context,
  )
}

async function redeem(
  { database, random, signer, metrics, jwt }: GrantNeeds,
  offer: PresentedOffer,
  {
    clientId,
    jkt,
    details,
  }: { readonly clientId: string; readonly jkt: string | null; readonly details: Details | null },
  context: MessageContext,
): Promise<Issued | OAuthRefused> {
  const { tenantId, id, subject, configurationId, issuer } = offer
  const scopes = [configurationId]
  const grant: AccessGrant = {
    subject,
    subjectType: 'human',
    tenantId,
    organizationId: null,
    clientId,
    scopes,
    audience: [issuer],
    sessionId: null,
    grantId: null,
    level: null,
    amr: [],
    authTimeSecs: null,
    jkt,
    authorizationDetails: details,
  }
  const lifetimeSecs = Math.min(jwt.access_token_lifetime_human_secs, LIFETIME_SECS_MAX)
  const access = await signer.sign(grant, lifetimeSecs, context)
  const { tokenId, issuedAt: now } = access
  const redeemed = await inTenant(database, tenantId, context, async (tx) => {
    const won = await redeemPreAuthorizedCode(tx, { tenantId, id, right: true, tokenId, now })
    if (won === true)
      appendEvents(tx, [issuedEvent(random, grant, access, PRE_AUTHORIZED_CODE, context.requestId)])
    return won === true
  })
  if (!redeemed)
    return refuse('invalid_grant', 'the pre-authorized_code was used or has expired', 'code_reused')
  metrics.issued(PRE_AUTHORIZED_CODE, 'human')
  return { ...accessAlone(access, scopes), authorizationDetails: details }
}

function hasRightTxCode({ id, txCodeSha256 }: PresentedOffer, txCode: string | null): boolean {
  if (txCodeSha256 === null) return true
  return txCode!.length <= TX_CODE_CHARACTERS_MAX && isTxCode(id, txCode!, txCodeSha256)
}

/** The details of the token if the request has authorization_details (OpenID4VCI section 6.1.1), else null. */
function readAsked(
  { issuer: service }: GrantNeeds,
  { id, configurationId, issuer }: PresentedOffer,
  form: OAuthForm,
): Details | OAuthRefused | null {
  const scope = form.get('scope')
  if (scope !== null && !(readScope(scope)?.every((one) => one === configurationId) ?? false))
    return refuse('invalid_scope', 'the offer has no such scope', 'scope_not_allowed')
  const asked = readRequestedAudience(form)
  if ('fault' in asked) return refuse('invalid_target', asked.fault, 'resource_invalid')
  if (spelledAs(asked.requested, [issuer, service]) === null)
    return refuse(
      'invalid_target',
      'the token is for the credential issuer of the offer',
      'resource_not_granted',
    )
  const text = form.get('authorization_details')
  if (text === null) return null
  const details = parse(text)
  const isOffered = (one: unknown): boolean => {
    if (typeof one !== 'object' || one === null) return false
    const { type, credential_configuration_id: named, locations } = one as Record<string, unknown>
    if (type !== CREDENTIAL_DETAILS_TYPE || named !== configurationId) return false
    return (
      locations === undefined ||
      (Array.isArray(locations) && locations.every((location) => location === issuer))
    )
  }
  if (!Array.isArray(details) || details.length !== 1 || !isOffered(details[0]))
    return refuse(
      'invalid_authorization_details',
      'authorization_details must name the credential of the offer',
      'details_not_granted',
    )
  return [
    {
      type: CREDENTIAL_DETAILS_TYPE,
      credential_configuration_id: configurationId,
      credential_identifiers: [id],
    },
  ]
}

function parse(text: string): unknown {
  if (text.length > DETAILS_CHARACTERS_MAX) return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
