/**
 * Logos of clients that a metadata document identifies, for their consent page. Fetched by the service, so that the host
 * of a logo does not see who signs in, and embedded in the page. Nothing of a document is trusted: a logo is a small PNG,
 * JPEG or WebP image by its bytes, or it is not shown.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../../../../runtime/kernel/clock.js'
import {
  createBoundedFetch,
  FetchFailed,
} from '../../../../platform/outbound-http/bounded-fetch.js'
import type { EgressSettings } from '../../../../platform/outbound-http/outbound.js'
import { sitePlaces } from '../../../../platform/outbound-http/site-places.js'
import { type ImageKind, imageKindOf } from '../../../../platform/image-header.js'

const BYTES_MAX = 64 * 1024
/** Pixels per side: a small file can unpack to a large image. */
const SIDE_MAX = 1_024
const FETCH_MS_MAX = 5_000
/** Time that a page waits. A slower logo is on the next page. */
const PAGE_MS_MAX = 1_000
const KEPT_MS = 60 * 60_000
const ABSENT_MS = 5 * 60_000
const KEPT_MAX = 128

const MEDIA_TYPES: Readonly<Record<ImageKind, string>> = {
  png: 'image/png',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
}

export interface ClientLogos {
  /** The image as a data URL. Null without one that may be shown. */
  of(url: string): Promise<string | null>
  close(): Promise<void>
}

export function createClientLogos({
  settings,
  clock,
}: {
  readonly settings: EgressSettings
  readonly clock: Clock
}): ClientLogos {
  const fetcher = createBoundedFetch({
    settings,
    answerBytesMax: BYTES_MAX,
    timeoutMs: FETCH_MS_MAX,
  })
  const places = sitePlaces('client_logos')
  const kept = new Map<string, { readonly image: string | null; readonly untilMs: number }>()
  const inFlight = new Map<string, Promise<string | null>>()

  async function fetched(url: string): Promise<string | null> {
    try {
      const headers = { accept: 'image/png, image/jpeg, image/webp' }
      const response = await fetcher.fetch(url, { method: 'GET', headers })
      if (response.status !== 200) return null
      return dataUrl(Buffer.from(await response.arrayBuffer()))
    } catch (error) {
      if (error instanceof FetchFailed) return null
      throw error
    }
  }

  async function load(url: string): Promise<string | null> {
    const image = await places(new URL(url), null, () => fetched(url))
    if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value!)
    const lifetimeMs = image === null ? ABSENT_MS : KEPT_MS
    kept.set(url, { image, untilMs: clock.monotonicMs() + lifetimeMs })
    return image
  }

  return {
    async of(url) {
      const known = kept.get(url)
      if (known !== undefined && known.untilMs > clock.monotonicMs()) return known.image
      kept.delete(url)
      let loading = inFlight.get(url)
      if (loading === undefined) {
        loading = load(url)
          .catch(() => null)
          .finally(() => inFlight.delete(url))
        inFlight.set(url, loading)
      }
      return Promise.race([loading, sleep(PAGE_MS_MAX, null, { ref: false })])
    },
    close: () => fetcher.close(),
  }
}

function dataUrl(bytes: Buffer): string | null {
  const header = imageKindOf(bytes)
  if (header === null || header.width > SIDE_MAX || header.height > SIDE_MAX) return null
  return `data:${MEDIA_TYPES[header.kind]};base64,${bytes.toString('base64')}`
}
