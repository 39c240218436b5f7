/**
 * Checks that the DID of a registration names the agent's key: a did:key encodes the key, the document
 * of a did:web lists it. The check runs once, when a registration starts, before the proof of work.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Documents, Fetched } from '../../platform/outbound-http/documents.js'
import {
  fairDocuments,
  type FairDocumentsNeeds,
} from '../../platform/outbound-http/fair-documents.js'
import { SHARE_EXHAUSTED } from '../../platform/outbound-http/site-places.js'
import { documentFault, readDidWeb, type SoughtKey } from './did-web.js'
import type { AnchorType, StartRefused } from './protocol.js'

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

export type AnchorNeeds = FairDocumentsNeeds & {
  readonly clock: Clock
  readonly documents: Pick<Documents, 'fetch' | 'faultOf'>
}
export type Anchor = { readonly type: AnchorType; readonly value: string }
export type AnchorVerdict =
  | { readonly tag: 'anchor'; readonly anchor: Anchor }
  | Extract<StartRefused, { tag: 'invalid_registration' | 'anchor_unavailable' | 'busy' }>

const BUSY: AnchorVerdict = { tag: 'busy' }

export function anchors({ clock, documents, groups, counts }: AnchorNeeds) {
  const documentsOf = fairDocuments(
    { documents, groups, counts },
    { resource: 'did_web', total: FETCHING_MAX, perSenderMax: FETCHING_PER_SENDER_MAX },
  )

  /**
   * @param key a key whose ownership is proven and that `key.did` encodes.
   * @param from the tenant where the agent registers, and the network of the stranger who asks, which holds the place:
   * all strangers who begin a workspace do so in one tenant.
   */
  async function judge(
    { type, value }: { readonly type: AnchorType; readonly value: string | undefined },
    key: SoughtKey,
    { tenantId, network }: { readonly tenantId: string; readonly network: string | null },
  ): Promise<AnchorVerdict> {
    if (type === 'did_key') return { tag: 'anchor', anchor: { type, value: key.did } }
    if (value === undefined) return invalid('is required where anchor_type is did_web')
    const parsed = readDidWeb(value)
    if (parsed.tag === 'malformed') return invalid(parsed.detail)
    const fault = documents.faultOf(parsed.url)
    if (fault === 'url_port') return invalid('names a port other than 443')
    if (fault !== null) return invalid('does not name a host of the public internet')
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
    // The remembered document may be outdated, so a rejected one is fetched anew once.
    const fault = remembered?.tag === 'invalid_registration' ? await faultAt(true) : remembered
    return fault ?? { tag: 'anchor', anchor: { type: 'did_web', value: did } }
  }

  function faultOf(fetched: Fetched, did: string, key: SoughtKey) {
    if (fetched.tag === 'failed') {
      if (fetched.fault === SHARE_EXHAUSTED) return BUSY
      const lasting = LASTING[fetched.fault]
      return lasting === undefined ? unavailable(fetched.fault) : invalid(`is a did:web ${lasting}`)
    }
    const fault = documentFault(fetched.document, did, key, clock.now().getTime())
    return fault === null ? null : invalid(`is a did:web ${fault}`)
  }

  return { judge }
}

function invalid(detail: string): Extract<AnchorVerdict, { tag: 'invalid_registration' }> {
  return { tag: 'invalid_registration', pointer: '/anchor_value', detail }
}

function unavailable(detail: string): Extract<AnchorVerdict, { tag: 'anchor_unavailable' }> {
  return { tag: 'anchor_unavailable', detail }
}
