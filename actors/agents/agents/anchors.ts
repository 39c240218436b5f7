/**
 * Checks the anchor of a registration: a did:key encodes the agent's key, the document of a did:web lists it, and the owner
 * of an agent on a chain has signed for it. The check runs once, when a registration starts, before the proof of work.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { NewAgent } from '../../../storage/agents/agents.js'
import type { Documents, Fetched } from '../../platform/outbound-http/documents.js'
import {
  fairDocuments,
  type FairDocumentsNeeds,
} from '../../platform/outbound-http/fair-documents.js'
import { SHARE_EXHAUSTED } from '../../platform/outbound-http/site-places.js'
import { documentFault, readDidWeb, type SoughtKey } from './did-web.js'
import { erc8004, type Erc8004Needs } from './erc8004.js'
import type { Registration, StartRefused } from './protocol.js'

/**
 * Concurrent document fetches. Hosts that never respond can occupy this many mailbox slots at most,
 * which leaves the others for logins.
 */
export const FETCHING_MAX = 256
const FETCHING_PER_SENDER_MAX = 16

/** Permanent faults, answered with 400. Any other fault is transient and answered with 503. */
const LASTING: Readonly<Record<string, string>> = {
  destination_ip_prohibited: 'whose host is at a prohibited address',
  content_encoding: 'whose document is sent with a content-encoding',
  http_response_body_size: 'whose document is larger than 65536 bytes',
  not_json: 'whose document is not JSON',
}

export type AnchorNeeds = FairDocumentsNeeds &
  Erc8004Needs & {
    readonly clock: Clock
    readonly documents: Pick<Documents, 'fetch' | 'faultOf'>
  }
type ClaimedAnchor = Pick<Registration, 'anchorType' | 'anchorValue' | 'anchorProof'>
/** An agent on a chain has a did:key too, by which it logs in. */
export type Anchor = Pick<NewAgent, 'anchorType' | 'did' | 'onChain'>
type AnchorVerdict =
  | { readonly tag: 'anchor'; readonly anchor: Anchor }
  | Extract<
      StartRefused,
      { tag: 'invalid_registration' | 'anchor_unavailable' | 'chain_unavailable' | 'busy' }
    >

const BUSY: AnchorVerdict = { tag: 'busy' }

export function anchors(needs: AnchorNeeds) {
  const { clock, documents, groups, counts } = needs
  const { judge: judgeOnChain } = erc8004(needs)
  const documentsOf = fairDocuments(
    { documents, groups, counts },
    { resource: 'did_web', total: FETCHING_MAX, perSenderMax: FETCHING_PER_SENDER_MAX },
  )

  /**
   * @param key a key whose ownership is proven and that `key.did` encodes. `ownership` is what it signed.
   * @param from the tenant where the agent registers, and the network of the stranger who asks, which holds the place:
   * all strangers who begin a workspace do so in one tenant.
   */
  async function judge(
    { anchorType: type, anchorValue: value, anchorProof: proof }: ClaimedAnchor,
    key: SoughtKey & { readonly ownership: string },
    from: { readonly tenantId: string; readonly network: string | null },
  ): Promise<AnchorVerdict> {
    const { did, ownership } = key
    if (type === 'erc8004') {
      if (typeof value !== 'object') return invalid('must have the members chain and agent_id')
      const verdict = await judgeOnChain(value, { proof, ownership }, from)
      if (verdict.tag !== 'on_chain') return verdict
      return { tag: 'anchor', anchor: { anchorType: type, did, onChain: verdict.onChain } }
    }
    if (typeof value === 'object') return invalid('must be a DID')
    if (type === 'did_key') return anchor(type, did)
    if (value === undefined) return invalid('is required where anchor_type is did_web')
    const { tenantId, network } = from
    const parsed = readDidWeb(value)
    if (parsed.tag === 'malformed') return invalid(parsed.detail)
    const fault = documents.faultOf(parsed.url)
    if (fault === 'url_port') return invalid('names a port other than 443')
    if (fault !== undefined) return invalid('does not name a host of the public internet')
    const own = documentsOf({ tenantId, key: network ?? tenantId })
    return judgeDocument(own, parsed.url, value, key)
  }

  async function judgeDocument(
    own: Pick<Documents, 'fetch'>,
    url: string,
    did: string,
    key: SoughtKey,
  ): Promise<AnchorVerdict> {
    const faultAt = async (refresh: boolean) => faultOf(await own.fetch(url, { refresh }), did, key)
    const remembered = await faultAt(false)
    // The cached document may be old, so a rejected one is fetched again.
    const fault = remembered?.tag === 'invalid_registration' ? await faultAt(true) : remembered
    return fault ?? anchor('did_web', did)
  }

  function faultOf(fetched: Fetched, did: string, key: SoughtKey) {
    if (fetched.tag === 'failed') {
      if (fetched.fault === SHARE_EXHAUSTED) return BUSY
      const lasting = LASTING[fetched.fault]
      return lasting === undefined ? unavailable(fetched.fault) : invalid(`is a did:web ${lasting}`)
    }
    const fault = documentFault(fetched.document, did, key, clock.now().getTime())
    return fault === undefined ? undefined : invalid(`is a did:web ${fault}`)
  }

  return { judge }
}

function anchor(anchorType: 'did_key' | 'did_web', did: string): AnchorVerdict {
  return { tag: 'anchor', anchor: { anchorType, did, onChain: undefined } }
}

function invalid(detail: string): Extract<AnchorVerdict, { tag: 'invalid_registration' }> {
  return { tag: 'invalid_registration', pointer: '/anchor_value', detail }
}

function unavailable(detail: string): Extract<AnchorVerdict, { tag: 'anchor_unavailable' }> {
  return { tag: 'anchor_unavailable', detail }
}
