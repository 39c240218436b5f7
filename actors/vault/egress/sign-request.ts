/** `POST /v1/sign-request`: the fields of a signature, for a call that the agent sends itself. Decided like a call. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { readPrincipal } from '../../domain/packed-principal.js'
import type { Principal } from '../../domain/principal.js'
import { admitCall } from './admitted-call.js'
import { type Share, withinShare } from './call-share.js'
import type { ProxyRequest, RelayReport, SignRequestOutcome } from './protocol.js'
import { type ProxyNeeds, UNSENT } from './proxy.js'
import { signed } from './sending.js'

const SIGNING = { scheme: 'http_signature', secret: {} } as const
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
    return withinShare(needs, principal, request, (share) =>
      admitAndSign(needs, principal, request, share, context),
    )
  }
}

async function admitAndSign(
  needs: ProxyNeeds,
  principal: Principal,
  request: ProxyRequest,
  share: Share,
  context: MessageContext,
): Promise<SignRequestOutcome> {
  // A credential of another scheme is refused before a person is asked for an approval.
  const asked = { ...request, authScheme: SIGNING.scheme }
  const call = await admitCall(needs, principal, asked, share, context)
  if (call.tag !== 'admitted_call') return call
  const { outgoing, admitted } = call
  const { facts, row, budget } = admitted
  let report = UNSENT
  try {
    const handedOut = request.approvalId === null ? ('granted' as const) : ('exact' as const)
    const uses = { credentialId: row.id, held: share.held, isMetered: false, handedOut }
    const signing = signed(needs, outgoing, SIGNING, uses)
    const { headers, release } = await share.whileHeld(signing, (late) => late.release())
    release()
    report = signedReport(outgoing.request.bodyBytes ?? 0)
    const fields = headers.flatMap(([name, value]) =>
      NAMES[name] === undefined ? [] : [[NAMES[name], value] as const],
    )
    return { tag: 'signed_request', headers: Object.fromEntries(fields) }
  } finally {
    const unusedBytes = budget === null ? 0 : budget.takenBytes - report.requestBytes
    needs.admission.close({ facts, report, unusedBytes, isBudgetSpent: false })
  }
}

/** Who has the signature can send the request, so that it counts as sent. */
const signedReport = (bytes: number): RelayReport => ({
  ...UNSENT,
  outcome: 'completed',
  bytes,
  requestBytes: bytes,
  isHeard: true,
  proxyError: null,
})
