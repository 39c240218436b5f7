import test from 'ava'
import * as fc from 'fast-check'
import {
  CONTROL_PLANE_SLUG,
  slugAllowed,
  slugCandidates,
} from '../../../../actors/domain/tenants/slugs.js'

let count = 0
const unique = () => `${(count += 1)}`.padStart(8, '0')
const best = (name: string, suffix = '') => slugCandidates(name, { suffix, unique })[0]

for (const [name, suffix, slug] of [
  ['Acme Robotics', '', 'acme-robotics'],
  ['  Acme -- Robotics! ', '-sandbox', 'acme-robotics-sandbox'],
  ['Ärzte für Übermorgen', '', 'arzte-fur-ubermorgen'],
  ['日本語', '-sandbox', 'workspace-sandbox'],
  ['!!!', '', 'workspace'],
  ['a'.repeat(120), '', 'a'.repeat(54)],
  ['a'.repeat(120), '-sandbox', `${'a'.repeat(46)}-sandbox`],
] as const) {
  test(`${JSON.stringify(name.slice(0, 30))} with suffix "${suffix}" becomes ${slug}`, (t) => {
    t.is(best(name, suffix), slug)
  })
}

test('a reserved or too short name is only used once it is made unique', (t) => {
  t.regex(best('Auth') ?? '', /^auth-\d{8}$/)
  t.regex(best('Control plane') ?? '', /^control-plane-\d{8}$/)
  t.regex(best('ab') ?? '', /^ab-\d{8}$/)
  t.false(slugAllowed(CONTROL_PLANE_SLUG))
})

test('every name gives allowed slugs, more than one of them', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 120 }), (name) => {
        const slugs = slugCandidates(name, { suffix: '-sandbox', unique })
        return slugs.length > 1 && slugs.every(slugAllowed)
      }),
    ),
  )
})
