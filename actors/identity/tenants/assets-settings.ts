/** [tenant_assets]: tenant logos in an object store. */
import { z } from 'zod'
import { flag, notes, secret, text, url } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

export const tenantAssetsSettings = section(
  'tenant_assets',
  {
    enabled: flag(false).describe('Tenants may upload logos.'),
    public_base_url: url(['https:'], 'an https URL', 'https://assets.example.com')
      .optional()
      .describe('Where browsers fetch assets. HTTPS.'),
    s3_endpoint: url(['https:', 'http:'], 'an http or https URL', 'https://s3.example.com')
      .optional()
      .describe('The object store.'),
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
  },
  {
    about: 'Logos of tenants, in an S3-compatible object store.',
    rules: (['public_base_url', 's3_endpoint', 'bucket', 'region'] as const).map((key) => ({
      keys: [key, 'enabled'] as [string, string],
      holds: (assets) => !assets.enabled || assets[key] !== undefined,
      rule: 'be set when tenant_assets.enabled is true',
      fix: `set tenant_assets.${key}`,
    })),
  },
)

export type TenantAssetsSettings = SettingsOf<typeof tenantAssetsSettings>
