/**
 * Decodes images and encodes them again, in the pool. Only pixels survive: no metadata, no colour profile, no trailing
 * data of the upload.
 */
import sharp from 'sharp'
import { type AssetInvalid, type AssetKind, type AssetMediaType, PIXELS_MAX } from './protocol.js'

const DECODE_SECS_MAX = 5
/** Pixels per dimension. */
const LOGO_SIDE_MAX = 512
const FAVICON_SIDE = 64
const TRANSPARENT = { r: 0, g: 0, b: 0, alpha: 0 }

export type Encoded =
  | {
      readonly tag: 'image'
      readonly bytes: Uint8Array
      readonly mediaType: AssetMediaType
      readonly width: number
      readonly height: number
    }
  | { readonly tag: AssetInvalid['why'] }

sharp.cache(false)
sharp.concurrency(1)
// All decoders are off, except for the three formats. SVG and documents would run interpreters.
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({
  operation: ['VipsForeignLoadPngBuffer', 'VipsForeignLoadJpegBuffer', 'VipsForeignLoadWebpBuffer'],
})

/**
 * A logo becomes WebP of at most 512 pixels per side and is never enlarged. A favicon becomes PNG of 64 pixels per side,
 * which every browser can show in its tabs.
 */
export async function encode({
  kind,
  bytes,
}: {
  readonly kind: AssetKind
  readonly bytes: Uint8Array
}): Promise<Encoded> {
  const limits = { limitInputPixels: PIXELS_MAX, failOn: 'error', pages: 1 } as const
  try {
    const { width, height } = await sharp(bytes, limits).metadata()
    if (width * height > PIXELS_MAX) return { tag: 'too_many_pixels' }
    const upright = sharp(bytes, limits).timeout({ seconds: DECODE_SECS_MAX }).autoOrient()
    const sized =
      kind === 'logo'
        ? upright
            .resize({
              width: LOGO_SIDE_MAX,
              height: LOGO_SIDE_MAX,
              fit: 'inside',
              withoutEnlargement: true,
            })
            .webp({ quality: 90 })
        : upright
            .resize({
              width: FAVICON_SIDE,
              height: FAVICON_SIDE,
              fit: 'contain',
              background: TRANSPARENT,
            })
            .png({ compressionLevel: 9 })
    const { data, info } = await sized.toBuffer({ resolveWithObject: true })
    return {
      tag: 'image',
      // A copy, because the buffer may be a part of a larger one.
      bytes: new Uint8Array(data),
      mediaType: kind === 'logo' ? 'image/webp' : 'image/png',
      width: info.width,
      height: info.height,
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    if (message.includes('pixel limit')) return { tag: 'too_many_pixels' }
    return { tag: message.includes('timeout') ? 'too_slow' : 'undecodable' }
  }
}
