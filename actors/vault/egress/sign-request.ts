/** `POST /v1/sign-request`: the fields of a signature, for a call that the agent sends itself. Decided like a call. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { invariant } from '../../../runtime/kernel/assert.js'
import { readPrincipal } from '../../domain/packed-principal.js'
import { denied } from '../../domain/vault/denied.js'
import { judgeTarget } from '../../platform/outbound-http/targets.js'
import type { ProxyRequest, SignRequestOutcome } from './protocol.js'
import type { AdmissionRequest } from './admission/admission.js'
import { withCall } from './approved-call.js'
import { headerRefused, type ProxyNeeds, UNSENT, urlRefused } from './proxy.js'
import { sanitizedHeaders } from './relay/headers.js'
import { NotSent, signed } from './sending.js'

const SIGNED = { ...UNSENT, outcome: 'completed', proxyError: null } as const
/** The fields of a signature, as they are written. */
const NAMES: Readonly<Record<string, string>> = {
  'content-digest': 'Content-Digest',
  'signature-agent': 'Signature-Agent',
  'signature-input': 'Signature-Input',
  signature: 'Signature',
}

export function createSignRequest(needs: ProxyNeeds) {
  return async function signRequest(
    request: ProxyRequest,
    context: MessageContext,
  ): Promise<SignRequestOutcome> {
    const principal = readPrincipal(request.principal)
    const caller = { principal, address: request.clientAddress }
    const { credentialId, method, bodyBytes } = request
    const target = judgeTarget(request.url, needs.rules)
    if (target.tag === 'refused') return urlRefused(target.fault)
    const { url } = target
    const sanitized = sanitizedHeaders(request.headers)
    if (sanitized.tag === 'refused') return headerRefused(sanitized)
    const call = {
      method,
      url,
      headers: request.headers,
      authScheme: null,
      bodyBytes: bodyBytes ?? 0,
    }
    const asked: AdmissionRequest = {
      caller,
      credentialId,
      call,
      requestId: context.requestId,
      approvalId: request.approvalId,
      toApprove: null,
    }
    let admitted = await needs.admission.admit(asked)
    if (admitted.tag === 'call_wanted') {
      const body = request.body instanceof Uint8Array ? request.body : null
      admitted = await needs.admission.admit(withCall(asked, request, { url, ...sanitized }, body))
      invariant(admitted.tag !== 'call_wanted', 'the call was given')
    }
    if (admitted.tag !== 'admitted') return admitted
    const { facts, row, budget } = admitted
    const { tenantId } = principal
    const held = needs.memoryOf(tenantId, () => false)
    const end = (report: typeof UNSENT) =>
      needs.admission.close({
        facts,
        report,
        unusedBytes: budget?.takenBytes ?? 0,
        isBudgetSpent: false,
      })
    try {
      if (row.authScheme !== 'http_signature') {
        end(UNSENT)
        return NOT_SIGNED
      }
      const signing = { scheme: 'http_signature' as const, secret: {} }
      const outgoing = { request, url, headers: sanitized.headers, tenantId }
      const uses = { credentialId: row.id, held, isMetered: false }
      const sending = await signed(needs, outgoing, signing, uses)
      sending.release()
      end(SIGNED)
      const fields = sending.headers.flatMap(([name, value]) =>
        NAMES[name] === undefined ? [] : [[NAMES[name], value] as const],
      )
      return { tag: 'signed_request', headers: Object.fromEntries(fields) }
    } catch (error) {
      end(UNSENT)
      if (error instanceof NotSent && error.outcome.tag !== 'relayed') return error.outcome
      throw error
    } finally {
      held.release()
    }
  }
}

const NOT_SIGNED = denied(
  'auth_scheme_differs',
  'The auth_scheme of the credential is not http_signature.',
)
