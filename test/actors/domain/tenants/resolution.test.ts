import test from 'ava'
import * as fc from 'fast-check'
import { nameTenant, slugOfHost } from '../../../../actors/domain/tenants/resolution.js'

const ID = '11111111-2222-4333-8444-555555555555'
const settings = {
  baseDomain: 'svc.example',
  issuerHost: 'auth.svc.example',
  defaultTenantSlug: undefined,
}

for (const [title, selector, named] of [
  ['an id names the tenant', { tenantId: ID }, { by: 'id', id: ID, how: 'explicit' }],
  [
    'a slug names the tenant',
    { tenantSlug: 'acme' },
    { by: 'slug', slug: 'acme', how: 'explicit' },
  ],
  [
    'an explicit name wins over the host',
    { tenantSlug: 'acme', host: 'other.svc.example' },
    { by: 'slug', slug: 'acme', how: 'explicit' },
  ],
  ['a slug that cannot be one is not looked for', { tenantSlug: 'a\0b' }, { by: 'nothing_known' }],
  ['nor is one of another case', { tenantSlug: 'Acme' }, { by: 'nothing_known' }],
  ['id and slug together are a conflict', { tenantId: ID, tenantSlug: 'acme' }, { by: 'conflict' }],
  ['an id in capitals names nothing', { tenantId: 'ABCDEF' }, { by: 'nothing_known' }],
  [
    'a host under the base domain names its label',
    { host: 'Acme.SVC.example.:8443' },
    { by: 'slug', slug: 'acme', how: 'host' },
  ],
  ['the host of the issuer names no tenant', { host: 'auth.svc.example' }, { by: 'control_plane' }],
  ['the base domain itself names no tenant', { host: 'svc.example' }, { by: 'control_plane' }],
  ['a deeper host names no tenant', { host: 'a.b.svc.example' }, { by: 'control_plane' }],
  ['a foreign host names no tenant', { host: 'acme.evil.example' }, { by: 'control_plane' }],
  ['a look-alike host names no tenant', { host: 'acme-svc.example' }, { by: 'control_plane' }],
  ['nothing at all means the control plane', {}, { by: 'control_plane' }],
] as const) {
  test(title, (t) => t.deepEqual(nameTenant(selector, settings), named))
}

test('a default slug switches the look at the host off', (t) => {
  const local = { ...settings, defaultTenantSlug: 'local' }
  const named = { by: 'slug', slug: 'local', how: 'default' } as const
  t.deepEqual(nameTenant({ host: 'acme.svc.example' }, local), named)
  t.like(nameTenant({ tenantSlug: 'acme' }, local), { slug: 'acme', how: 'explicit' })
})

test('no host makes the look-up throw or give anything but one label', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.domain(), fc.ipV6()), (host) => {
        const slug = slugOfHost(`${host}.svc.example`, settings)
        return slug === undefined || (slug !== '' && !slug.includes('.'))
      }),
    ),
  )
})
