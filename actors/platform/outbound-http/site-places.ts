/**
 * Places for requests that wait for a document of another party. A host that never answers holds the places of the
 * actors that wait for it, so the hosts of one site hold few, and further requests fail immediately.
 */
import { isIP } from 'node:net'
import { FairShare, inPlace } from '../../../runtime/kernel/fairness/fair-share.js'

/** Fewer than the places of each actor that waits for documents. */
const WAITING_MAX = 224
/** A hundred callers may want one document at the same time. */
const WAITING_PER_SITE_MAX = 112
/** The fault of a document for which no place is free. */
export const SHARE_EXHAUSTED = 'share_exhausted'

/** Runs a fetch in a place of the site of a URL. Returns `busy` where none is free. */
type SitePlaces = <T>(url: URL, busy: T, run: () => Promise<T>) => Promise<T>

/** @param resource names the places in refusals. */
export function sitePlaces(resource: string): SitePlaces {
  const levels = [{ name: 'site', max: WAITING_PER_SITE_MAX }]
  const places = new FairShare({ resource, total: WAITING_MAX, levels })
  return (url, busy, run) => inPlace(places, siteOf(url), [], busy, run)
}

/** A party may have any number of names below its domain, so the last two labels count. */
function siteOf({ hostname }: URL): string {
  return isIP(hostname) > 0 ? hostname : hostname.split('.').slice(-2).join('.')
}
