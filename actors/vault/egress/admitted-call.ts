/** Validates and admits a call. What an approval covers is everything that is sent upstream, without the credential. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { invariant } from '../../../runtime/kernel/assert.js'
import type { Principal } from '../../domain/principal.js'
import { denied } from '../../domain/vault/denied.js'
import { isUuid } from '../../domain/ids.js'
import { sha256Hex } from '../../platform/call-approvals.js'
import { judgeTarget, type TargetRules } from '../../platform/outbound-http/targets.js'
import type { Admission, AdmissionRequest, Admitted } from './admission/admission.js'
import { invalid, withPlainQuotes, withPlainUnreserved } from './admission/rules.js'
import type { Share } from './call-share.js'
import type { HeaderFault, NotRelayed, ProxyRequest, UrlFault } from './protocol.js'
import { type RefusedHeader, sanitizedHeaders } from './relay/headers.js'
import { type Outgoing, type SigningNeeds, wholeBody } from './sending.js'

export type AdmitNeeds = Omit<SigningNeeds, 'signers'> & {
  readonly admission: Admission
  readonly rules: TargetRules
}

/** Close its admission at its end. */
export type AdmittedCall = {
  readonly tag: 'admitted_call'
  readonly admitted: Admitted
  readonly outgoing: Outgoing
}

/**
 * Without a promise the call goes on in this turn.
 * @throws {GivenUp | NotSent} while the body is read, before the admission.
 */
export function admitCall(
  needs: AdmitNeeds,
  principal: Principal,
  request: ProxyRequest,
  share: Share,
  { requestId }: MessageContext,
): AdmittedCall | NotRelayed | Promise<AdmittedCall | NotRelayed> {
  const { bodyBytes, credentialId, method, authScheme, approvalId } = request
  if (!isUuid(credentialId)) return invalid('/credential_id', 'The credential_id must be a UUID.')
  const target = judgeTarget(request.url, needs.rules)
  if (target.tag === 'refused') return urlRefused(target.fault)
  const { url } = target
  const { pathname } = url
  const plain = withPlainUnreserved(pathname)
  // An assignment parses the URL again.
  if (plain !== pathname) url.pathname = plain
  const sanitized = sanitizedHeaders(request.headers)
  if (sanitized.tag === 'refused') return headerRefused(sanitized)
  if (bodyBytes !== null && bodyBytes > needs.bodyBytesMax) return { tag: 'body_too_large' }
  const asked: AdmissionRequest = {
    caller: { principal, address: request.clientAddress },
    credentialId,
    call: { method, url, headers: request.headers, authScheme, bodyBytes: bodyBytes ?? 0 },
    requestId,
    approvalId,
    toApprove: null,
  }
  const { headers } = sanitized
  const outgoing = { request, url, headers, tenantId: principal.tenantId }
  const deciding = needs.admission.admit(asked)
  return deciding instanceof Promise
    ? decided(needs, asked, deciding, outgoing, share)
    : admittedCall(deciding, outgoing)
}

function admittedCall(admitted: Admitted, whole: Outgoing): AdmittedCall {
  const outgoing = admitted.allowRange ? whole : withoutRange(whole)
  return { tag: 'admitted_call', admitted, outgoing }
}

async function decided(
  needs: AdmitNeeds,
  asked: AdmissionRequest,
  deciding: ReturnType<Admission['admit']>,
  outgoing: Outgoing,
  share: Share,
): Promise<AdmittedCall | NotRelayed> {
  const { request } = outgoing
  const outcome = await deciding
  if (outcome.tag === 'admitted') return admittedCall(outcome, outgoing)
  if (outcome.tag !== 'call_wanted') return outcome
  const body = await share.whileHeld(wholeBody(needs, request, share.held), () => undefined)
  const read = body === null ? request : { ...request, body, bodyBytes: body.byteLength }
  const approved = await needs.admission.admit(withCall(asked, outgoing, body))
  invariant(approved.tag !== 'call_wanted', 'the call was given')
  return approved.tag === 'admitted'
    ? admittedCall(approved, { ...outgoing, request: read })
    : approved
}

const NO_BODY = new Uint8Array()

/** The admission of the whole call. The order of fields with different names means nothing (RFC 9110 section 5.3). */
function withCall(
  asked: AdmissionRequest,
  { request: { method, url: sent }, url, headers }: Outgoing,
  body: Uint8Array | null,
): AdmissionRequest {
  const query = withPlainQuotes(url.search, sent)
  const bodySha256 = sha256Hex(body ?? NO_BODY)
  const bodyBytes = body?.byteLength ?? 0
  const fields = headers.toSorted(([name], [other]) => (name < other ? -1 : name > other ? 1 : 0))
  const parts = [
    asked.credentialId,
    method,
    url.origin + url.pathname + query,
    JSON.stringify(fields),
    bodySha256,
  ]
  const { hostname: host, pathname: path } = url
  const shown = { method, host, path, query, bodySha256, bodyBytes }
  return { ...asked, call: { ...asked.call, bodyBytes }, toApprove: { parts, shown } }
}

/** Redaction cannot find a secret that is split over several ranges. */
function withoutRange({ headers, ...call }: Outgoing): Outgoing {
  return {
    ...call,
    headers: headers.filter(([name]) => name !== 'range' && name !== 'if-range'),
  }
}

export const PROHIBITED = denied('address_not_public', 'The host has no public address.')

function urlRefused(fault: UrlFault): NotRelayed {
  if (fault === 'url_host') return PROHIBITED
  return invalid('/url', URL_DETAILS[fault])
}

const URL_DETAILS: Readonly<Record<Exclude<UrlFault, 'url_host'>, string>> = {
  url_syntax:
    'The URL must be absolute and well-formed. Percent-encode spaces and similar characters.',
  url_scheme: 'The URL must use https.',
  url_userinfo: 'The URL must not contain a user or password.',
  url_fragment: 'The URL must not contain a fragment.',
  url_port: 'The URL must use port 443.',
}

function headerRefused({ fault, name }: RefusedHeader): NotRelayed {
  return invalid('/headers', HEADER_DETAILS[fault](JSON.stringify(name)))
}

const HEADER_DETAILS: Readonly<Record<HeaderFault, (name: string) => string>> = {
  header_name: (name) => `${name} is not a valid header name.`,
  header_value: (name) => `The value of ${name} contains characters that a header cannot hold.`,
  header_repeated: (name) => `${name} must not occur more than once.`,
  header_duplicates_injected: (name) =>
    `The proxy sets ${name}, so the request must not contain it.`,
}
