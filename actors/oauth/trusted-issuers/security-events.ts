/** Security events of a trusted issuer (RFC 8935): they end what its identity assertions gave, as its sign-outs do. */
import { readIssuerJws } from '../../platform/jose/issuer-jws.js'
import {
  EVENT_MEMORY_SECS,
  eventRefused,
  readSecurityEvent,
} from '../../platform/jose/security-event-claims.js'
import { receivedOnce } from '../../platform/received-once.js'
import { signatureFault } from './admission.js'
import type { TrustedIssuerHandler } from './needs.js'
import { endTokens, issuerOfPeople } from './sign-out.js'

export const receiveIssuerEvent: TrustedIssuerHandler<'receiveIssuerEvent'> = async (
  tools,
  { issuerId, token },
  context,
) => {
  const { clock, coordination, keys, ownIssuer } = tools
  const issuer = await issuerOfPeople(tools, issuerId, context)
  if (issuer === undefined) return eventRefused('the provider is unknown')
  const jws = readIssuerJws(token)
  if ('step' in jws) return eventRefused(jws.detail)
  if (!issuer.allowedAlgs.includes(jws.alg))
    return eventRefused(`the issuer may not use ${jws.alg}`, 'invalid_key')
  const expected = { issuer: issuer.issuer, audience: ownIssuer, nowSecs: clock.nowSecs() }
  const event = readSecurityEvent(jws, expected)
  if ('tag' in event) return event
  if ('unreachable' in (await keys.of(issuer, false))) return { tag: 'unavailable' }
  const unsigned = await signatureFault(tools, jws, issuer)
  if (unsigned !== undefined) return eventRefused(unsigned.detail, 'invalid_key')
  const { type, effect, subject: sub, tenant, tokenId: jti, untilSecs: issuedAtSecs } = event
  if (effect === null) return { tag: 'received' }
  // Assertions name no session.
  if (sub === null) return eventRefused('sub_id names no user')
  const { id, tenantId } = issuer
  const asserted = { tenantId, issuerId: id, sub, tenant, issuedAtSecs }
  return receivedOnce(coordination, `issuer-event:${id} ${jti}`, EVENT_MEMORY_SECS, () =>
    endTokens(tools, asserted, context, { type, jti, isPurge: effect === 'purge' }),
  )
}
