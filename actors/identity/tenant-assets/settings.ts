/** [tenant_assets]: logos and favicons of tenants, in an object store or a folder. */
import { z } from 'zod'
import { flag, notes, path, secret, text, url } from '../../../runtime/kernel/config/kinds.js'
import { section } from '../../../runtime/kernel/config/section.js'

/** 31,536,000 seconds: the window may be longer, never shorter. */
const RETIREMENT_DAYS_MIN = 365
const RETIREMENT_DAYS_MAX = 3_650

const S3_KEYS = ['public_base_url', 's3_endpoint', 'bucket', 'region'] as const

export const tenantAssetsSettings = section(
  'tenant_assets',
  {
    enabled: flag(false).describe(
      'Tenants may upload a logo and a favicon. Needs the object store or folder.',
    ),
    folder: path('/var/lib/svc/assets')
      .optional()
      .describe(
        'A folder in place of the object store, for development and for one machine. The service serves its files at /assets.',
      ),
    public_base_url: url(['https:'], 'an https URL', 'https://assets.example.com')
      .optional()
      .describe('Where browsers fetch assets of the object store. HTTPS.'),
    s3_endpoint: url(['https:', 'http:'], 'an http or https URL', 'https://s3.example.com')
      .optional()
      .describe(
        'The object store: S3 or a server with its API. Requests name the bucket in the path.',
      ),
    bucket: z
      .string()
      .min(3)
      .max(63)
      .register(notes, { example: 'svc-assets' })
      .optional()
      .describe('Bucket.'),
    region: text('eu-central-1').optional().describe('Region.'),
    access_key_id: secret()
      .optional()
      .describe('Set it on control and async planes only, by SVC_TENANT_ASSETS__ACCESS_KEY_ID.'),
    secret_access_key: secret()
      .optional()
      .describe('Likewise, by SVC_TENANT_ASSETS__SECRET_ACCESS_KEY.'),
    retirement_days: z
      .int()
      .min(RETIREMENT_DAYS_MIN)
      .max(RETIREMENT_DAYS_MAX)
      .default(RETIREMENT_DAYS_MIN)
      .describe('How long a replaced or deleted asset is still served before it is removed.'),
  },
  {
    about: 'Logos and favicons of tenants, in an S3-compatible object store or a folder.',
    rules: S3_KEYS.map((key) => ({
      keys: [key, 'enabled', 'folder'] as [string, string, string],
      holds: (
        assets: { readonly enabled: boolean; readonly folder?: string | undefined } & {
          readonly [K in (typeof S3_KEYS)[number]]?: string | undefined
        },
      ) => !assets.enabled || assets.folder !== undefined || assets[key] !== undefined,
      rule: 'be set when tenant_assets.enabled is true and tenant_assets.folder is not set',
      fix: `set tenant_assets.${key}, or tenant_assets.folder`,
    })),
  },
)
