/** The logo and the favicon of a tenant. See docs/guides/identity/hosted-pages.md. */
import { CONTROL_PLANE_TOKEN } from '../../../request/control-plane-tokens.js'
import { z } from 'zod'
import { ASSET_FILE, assetFiles } from '../../../../actors/identity/asset-files/protocol.js'
import {
  ASSET_KINDS,
  type AssetInvalid,
  type AssetSlot,
  PIXELS_MAX,
  tenantAssets,
  UPLOAD_BYTES_MAX,
} from '../../../../actors/identity/tenant-assets/protocol.js'
import { callerOf } from '../../../request/caller.js'
import { bytes, empty, problem, raw, type Route, reply, route } from '../../../route.js'

const PATH = '/api/v1/tenant/branding/assets'
const ONE = `${PATH}/{kind}`
/** The URL names the content, so that it never changes. */
const CACHE = 'public, max-age=31536000, immutable'
const BODY_SECS_MAX = 30

const tags = ['Tenant settings'] as const
const security = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['tenant:manage'],
} as const
const Kind = z.object({ kind: z.enum(ASSET_KINDS) })

const TenantAsset = z
  .object({
    kind: z.enum(ASSET_KINDS),
    url: z.url().nullable().meta({
      description: 'Where browsers fetch the image. It never names another image. Null: none.',
    }),
    media_type: z.enum(['image/webp', 'image/png']).nullable(),
    width: z.int().nullable().meta({ description: 'Pixels' }),
    height: z.int().nullable().meta({ description: 'Pixels' }),
    size_bytes: z.int().nullable(),
    created_at: z.iso.datetime().nullable(),
  })
  .meta({
    id: 'TenantAsset',
    description: 'The image of a kind. Its members are null without one.',
  })

function assetJson({ kind, asset }: AssetSlot): z.input<typeof TenantAsset> {
  return {
    kind,
    url: asset?.url ?? null,
    media_type: asset?.mediaType ?? null,
    width: asset?.width ?? null,
    height: asset?.height ?? null,
    size_bytes: asset?.sizeBytes ?? null,
    created_at: asset?.createdAt.toISOString() ?? null,
  }
}

const WHY: Readonly<Record<AssetInvalid['why'], string>> = {
  undecodable: 'The body is not a complete PNG, JPEG or WebP image.',
  too_many_pixels: `The image must have at most ${PIXELS_MAX.toLocaleString('en')} pixels.`,
  too_slow: 'The image takes more than 5 seconds to decode.',
}

const noEnvironment = problem(403, 'forbidden', {
  reason: CONTROL_PLANE_TOKEN,
  detail: 'The control plane has no images: use a token of one of your environments.',
})

const shared = { tags, exposure: 'internal', security } as const

export const tenantAssetRoutes: readonly Route[] = [
  route(tenantAssets, 'listTenantAssets', {
    ...shared,
    method: 'GET',
    path: PATH,
    summary: 'List the logo and the favicon of the tenant',
    message: ({ principal }) => ({ tenantId: principal.tenantId }),
    replies: {
      listed: reply(200, z.array(TenantAsset), ({ slots }) => slots.map(assetJson)),
      no_environment: noEnvironment,
    },
  }),
  route(tenantAssets, 'readTenantAsset', {
    ...shared,
    method: 'GET',
    path: ONE,
    summary: 'Read the logo or the favicon of the tenant',
    params: Kind,
    message: ({ principal, params }) => ({ tenantId: principal.tenantId, kind: params.kind }),
    replies: {
      found: reply(200, TenantAsset, ({ slot }) => assetJson(slot)),
      no_environment: noEnvironment,
    },
  }),
  route(tenantAssets, 'uploadTenantAsset', {
    ...shared,
    method: 'PUT',
    path: ONE,
    summary: 'Upload the logo or the favicon of the tenant',
    description:
      'The body is a PNG, JPEG or WebP file of at most 512 KiB and 4,000,000 pixels. SVG is refused. The image is ' +
      'decoded and encoded again, without its metadata: a logo as WebP of at most 512 pixels per side, a favicon ' +
      'as PNG of 64 pixels per side. It takes effect on all pages immediately. The previous image of the kind is ' +
      'retired: its URL works for a year or longer.',
    params: Kind,
    body: raw(['image/png', 'image/jpeg', 'image/webp'], {
      maxBytes: UPLOAD_BYTES_MAX,
      withinSecs: BODY_SECS_MAX,
    }),
    capabilities: ['tenant_assets'],
    message: (request) => ({
      caller: callerOf(request),
      kind: request.params.kind,
      bytes: request.body,
    }),
    replies: {
      found: reply(200, TenantAsset, ({ slot }) => assetJson(slot)),
      invalid: problem(400, 'bad-request', ({ why }: AssetInvalid) => ({
        detail: WHY[why],
        errors: [{ pointer: '#', detail: WHY[why] }],
      })),
      full: problem(409, 'conflict', ({ most }: { readonly most: number }) => ({
        detail: `The tenant keeps ${most} images. Retired ones are removed after their retirement window.`,
      })),
      no_environment: noEnvironment,
    },
  }),
  route(tenantAssets, 'deleteTenantAsset', {
    ...shared,
    method: 'DELETE',
    path: ONE,
    summary: 'Remove the logo or the favicon from the pages of the tenant',
    description: 'The image is retired: its URL works for a year or longer.',
    params: Kind,
    message: (request) => ({ caller: callerOf(request), kind: request.params.kind }),
    replies: {
      removed: empty(204),
      absent: problem(404, 'not-found', { detail: 'The tenant has no image of this kind.' }),
      no_environment: noEnvironment,
    },
  }),
  route(assetFiles, 'getAssetFile', {
    method: 'GET',
    path: '/assets/{tenant_id}/{file}',
    summary: 'The content of a logo or favicon',
    description: 'Only where the deployment keeps images in a folder and not in an object store.',
    tags: ['Hosted pages'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
    params: z.object({ tenant_id: z.uuid(), file: z.string().regex(ASSET_FILE) }),
    cors: 'public',
    cache: CACHE,
    quiet: true,
    message: ({ params }) => ({ tenantId: params.tenant_id, file: params.file }),
    replies: {
      webp: bytes(200, 'image/webp', ({ bytes: body }) => ({ body })),
      png: bytes(200, 'image/png', ({ bytes: body }) => ({ body })),
      unknown: problem(404, 'not-found', { detail: 'There is no such image.' }),
    },
  }),
]
