import test from 'ava'
import * as fc from 'fast-check'
import { z } from 'zod'
import { assemble } from '../../../../runtime/kernel/config/assemble.js'
import { count, flag, list, secret, text, url } from '../../../../runtime/kernel/config/kinds.js'
import { load } from '../../../../runtime/kernel/config/load.js'
import { section, sectionList } from '../../../../runtime/kernel/config/section.js'
import { runs } from '../../../support/runs.js'

const assembly = assemble(
  [
    section(
      'web',
      {
        port: count(80, 0, 65_535),
        host: text('h').default('localhost'),
        names: list(z.string().min(1)).default([]),
        sizes: list(z.int()).default([1]),
        mode: z.enum(['slow', 'fast']).default('slow'),
        open: flag(false),
        token: secret(4).optional(),
        home: url(['http:', 'https:'], 'a web address', 'http://h'),
        away: url(['http:', 'https:'], 'a web address', 'http://h').optional(),
        map: z.record(z.string(), z.string()).default({}),
        tls: z.object({ cert: text('c'), key: text('k'), ca: text('a').optional() }).optional(),
        pool: z.object({ least: count(1, 0), most: count(5) }),
      },
      {
        rules: [
          {
            keys: ['pool.least', 'pool.most'],
            holds: ({ pool }) => pool.least <= pool.most,
            rule: 'be at most web.pool.most',
            fix: 'lower it',
          },
        ],
      },
    ),
    section('vaulted', { path: text('/p'), size: count(3) }, { presence: 'when_set' }),
    sectionList('chains', { id: text('one'), decimals: count(6, 0, 36) }),
  ],
  {
    fallbacks: [
      {
        key: 'web.home',
        reads: ['web.host', 'web.port'],
        value: ({ web }) => `http://${web.host}:${web.port}`,
      },
      { key: 'web.away', reads: ['web.home'], value: ({ web }) => web.home },
    ],
    rules: [
      {
        keys: ['web.open', 'vaulted'],
        holds: ({ web, vaulted }) => !web.open || vaulted !== undefined,
        rule: 'be false without [vaulted]',
        fix: 'close it',
      },
    ],
  },
)

const names = {
  prefix: 'SVC_',
  reserved: ['SVC_FILE'],
  shortcuts: { WEB_HOST: 'web.host' },
  moved: { 'web.private_key': 'keep it elsewhere' },
}

const read = (toml: string, environment: Record<string, string> = {}) =>
  load(assembly, { environment, names, file: { path: 'svc.toml', text: toml } })

function settingsOf(toml: string, environment?: Record<string, string>) {
  const result = read(toml, environment)
  if (result.tag === 'refused') throw new Error(JSON.stringify(result.failures))
  return result
}

function failuresOf(toml: string, environment?: Record<string, string>) {
  const result = read(toml, environment)
  return result.tag === 'refused' ? result.failures : []
}

test('without any layer every key has its default and every source says so', (t) => {
  const { settings, sources } = settingsOf('')
  t.is(settings.web.port, 80)
  t.deepEqual(settings.web.names, [])
  t.is(settings.web.tls, undefined)
  t.is(settings.vaulted, undefined)
  t.deepEqual(settings.chains, [])
  t.deepEqual(sources.get('web.port'), { kind: 'default' })
})

test('the file overrides the default, and its line is recorded', (t) => {
  const { settings, sources } = settingsOf('[web]\n\nport = 81\n')
  t.is(settings.web.port, 81)
  t.deepEqual(sources.get('web.port'), { kind: 'file', path: 'svc.toml', line: 3 })
})

test('the environment overrides the file, and its name is recorded', (t) => {
  const { settings, sources } = settingsOf('web.port = 81', { SVC_WEB__PORT: '82' })
  t.is(settings.web.port, 82)
  t.deepEqual(sources.get('web.port'), { kind: 'environment', name: 'SVC_WEB__PORT' })
})

test('a shortcut has precedence over the prefixed name', (t) => {
  const { settings, sources } = settingsOf('', { WEB_HOST: 'short', SVC_WEB__HOST: 'long' })
  t.is(settings.web.host, 'short')
  t.deepEqual(sources.get('web.host'), { kind: 'environment', name: 'WEB_HOST' })
})

test('a fallback fills missing keys, also from earlier fallbacks', (t) => {
  const { settings, sources } = settingsOf('web.port = 8080')
  t.is(settings.web.home, 'http://localhost:8080')
  t.is(settings.web.away, 'http://localhost:8080')
  t.deepEqual(sources.get('web.home'), { kind: 'fallback', from: 'web.host, web.port' })
})

test('a fallback does not replace a given value', (t) => {
  t.is(settingsOf('web.home = "https://a"').settings.web.home, 'https://a')
})

test('a fallback that fails because its input failed adds no failure', (t) => {
  const keys = failuresOf('web.port = 99999\nweb.host = " bad host "').map(({ key }) => key)
  t.deepEqual(keys, ['web.port'])
})

test('a fallback with an invalid value leaves the key missing', (t) => {
  const [failure] = failuresOf('web.host = "not a host"')
  t.is(failure?.key, 'web.home')
  t.is(failure?.rule, 'must be set')
})

test('file and environment can both set tables inside of a section', (t) => {
  const { settings } = settingsOf('[web.tls]\ncert = "a"', { SVC_WEB__TLS__KEY: 'b' })
  t.like(settings.web.tls, { cert: 'a', key: 'b' })
})

test('an optional table asks for its required keys once one key is given', (t) => {
  const failures = failuresOf('', { SVC_WEB__TLS__CA: 'a' })
  t.deepEqual(
    failures.map(({ key, rule }) => [key, rule]),
    [
      ['web.tls.cert', 'must be set'],
      ['web.tls.key', 'must be set'],
    ],
  )
})

test('an empty table leaves a when_set section unset', (t) => {
  t.is(settingsOf('[vaulted]').settings.vaulted, undefined)
})

test('a whole table may be in the environment, and single keys override it', (t) => {
  const { settings } = settingsOf('', {
    SVC_WEB: '{ port = 1, host = "table" }',
    SVC_WEB__PORT: '2',
  })
  t.like(settings.web, { port: 2, host: 'table' })
})

test('lists of tables come from the file, from one variable, and from numbered variables', (t) => {
  const file = '[[chains]]\nid = "a"\n[[chains]]\nid = "b"\ndecimals = 2'
  t.deepEqual(settingsOf(file).settings.chains, [
    { id: 'a', decimals: 6 },
    { id: 'b', decimals: 2 },
  ])
  const numbered = settingsOf(file, { SVC_CHAINS__1__ID: 'c', SVC_CHAINS__2__ID: 'd' })
  t.deepEqual(
    numbered.settings.chains.map(({ id }) => id),
    ['a', 'c', 'd'],
  )
  t.deepEqual(numbered.sources.get('chains.1.decimals'), {
    kind: 'file',
    path: 'svc.toml',
    line: 5,
  })
  const whole = settingsOf(file, { SVC_CHAINS__0__DECIMALS: '0', SVC_CHAINS: '[{ id = "x" }]' })
  t.deepEqual(whole.settings.chains, [{ id: 'x', decimals: 0 }])
  t.deepEqual(settingsOf(file, { SVC_CHAINS: '[]' }).settings.chains, [])
})

test('a table of free keys is one value', (t) => {
  const { settings } = settingsOf('[web.map]\n"a.b" = "c"')
  t.deepEqual({ ...settings.web.map }, { 'a.b': 'c' })
})

for (const [title, toml, environment, key, rule] of [
  ['a number out of range', 'web.port = 70000', {}, 'web.port', /integer from 0 to 65535/],
  ['a text for a number', 'web.port = "80"', {}, 'web.port', /integer/],
  ['a fraction for an integer', 'web.port = 80.5', {}, 'web.port', /integer/],
  ['a number for a text', 'web.host = 1', {}, 'web.host', /not empty/],
  ['an unknown choice', 'web.mode = "quick"', {}, 'web.mode', /one of "slow", "fast"/],
  ['a wrong item of a list', 'web.names = ["a", 1]', {}, 'web.names', /a list/],
  ['a date for a text', 'web.host = 2024-01-01', {}, 'web.host', /not empty/],
  ['a value where a table is wanted', 'web.tls = 1', {}, 'web.tls', /must be a table/],
  ['a value where a section is wanted', 'web = 1', {}, 'web', /must be a table/],
  ['a table where a list is wanted', '[chains]\nid = "a"', {}, 'chains', /array of tables/],
  ['a list of no tables', 'chains = [1]', {}, 'chains', /array of tables/],
  ['an unknown section', '[wep]', {}, 'wep', /not a setting/],
  ['an unknown key', 'web.prot = 1', {}, 'web.prot', /not a setting/],
  ['a moved key', 'web.private_key = "k"', {}, 'web.private_key', /no longer/],
  ['an unknown variable', '', { SVC_WEB__PROT: '1' }, 'SVC_WEB__PROT', /not name a setting/],
  ['one underscore', '', { SVC_WEB_PORT: '1' }, 'SVC_WEB_PORT', /not name a setting/],
  ['a variable below a leaf', '', { SVC_WEB__PORT__X: '1' }, 'SVC_WEB__PORT__X', /not name/],
  ['a lower case variable', '', { SVC_web__port: '1' }, 'SVC_web__port', /not name/],
  ['a moved variable', '', { SVC_WEB__PRIVATE_KEY: 'k' }, 'SVC_WEB__PRIVATE_KEY', /no longer/],
  ['an element without a number', '', { SVC_CHAINS__ID: 'k' }, 'SVC_CHAINS__ID', /not name/],
  ['an element after a gap', '', { SVC_CHAINS__7__ID: 'k' }, 'chains.7', /must follow chains.6/],
  ['the prefix alone', '', { SVC_: '1' }, 'SVC_', /not name a setting/],
  ['a broken rule of a section', 'web.pool.least = 9', {}, 'web.pool.least', /must be at most/],
  ['a broken rule between sections', 'web.open = true', {}, 'web.open', /without \[vaulted\]/],
  ['text that is not TOML', 'a = = b', {}, 'svc.toml', /is not TOML/],
  ['a key that is given twice', 'web.port = 1\nweb.port = 2', {}, 'svc.toml', /is not TOML/],
] as const) {
  test(`${title} is refused and named`, (t) => {
    const failures = failuresOf(toml, environment)
    t.is(failures.length, 1, JSON.stringify(failures))
    t.is(failures[0]?.key, key)
    t.regex(failures[0]?.rule ?? '', rule)
  })
}

for (const [toml, environment, hint] of [
  ['web.prot = 1', {}, 'web.port'],
  ['[wep]', {}, 'did you mean web?'],
  ['port = 1', {}, 'web.port'],
  ['', { SVC_WEB_PORT: '1' }, 'SVC_WEB__PORT'],
  ['', { SVC_WEB__PROT: '1' }, 'SVC_WEB__PORT'],
  ['', { SVC_FILES: '1' }, 'SVC_FILE'],
] as const) {
  test(`${toml || Object.keys(environment)[0]} is answered with the nearest name`, (t) => {
    t.true(failuresOf(toml, environment)[0]?.fix.includes(hint))
  })
}

test('all failures of all layers are listed together', (t) => {
  const failures = failuresOf('web.prot = 1\nweb.port = -1\n[web.pool]\nleast = 9', {
    SVC_WEB__MODE: 'x',
    SVC_NOTHING: '1',
    SVC_WEB__OPEN: 'true',
  })
  t.deepEqual(
    failures.map(({ key }) => key).sort(),
    ['SVC_NOTHING', 'web.mode', 'web.open', 'web.pool.least', 'web.port', 'web.prot'].sort(),
  )
})

test('a rule is skipped while a key that it reads is invalid', (t) => {
  const keys = failuresOf('web.pool.least = 9\nweb.pool.most = 0').map(({ key }) => key)
  t.deepEqual(keys, ['web.pool.most'])
})

test('a failing secret is not printed, nor is an unknown key, nor the line of a syntax error', (t) => {
  const told = JSON.stringify([
    ...failuresOf('web.token = "abc"'),
    ...failuresOf('', { SVC_WEB__TOKEN: 'abc', SVC_WEB__TOKENS: 'abc' }),
    ...failuresOf('web.token = "abc'),
    ...failuresOf('', { SVC_WEB__PRIVATE_KEY: 'abc' }),
  ])
  t.false(told.includes('abc'), told)
  t.true(told.includes('[secret]'))
})

test('inherited members of objects are unknown keys', (t) => {
  for (const key of ['__proto__', 'constructor', 'toString']) {
    t.is(failuresOf(`[${key}]\nx = 1`)[0]?.rule, 'is not a setting')
    t.is(failuresOf(`web.${key} = 1`)[0]?.rule, 'is not a setting')
  }
  t.is(({} as Record<string, unknown>)['x'], undefined)
})

test('settings cannot be changed', (t) => {
  const { settings } = settingsOf('[[chains]]\nid = "a"')
  t.throws(() => Object.assign(settings.web.pool, { most: 7 }))
  t.throws(() => (settings.web.names as string[]).push('x'))
})

const word = fc.constantFrom('web', 'port', 'tls', 'cert', 'pool', 'chains', '0', 'map', 'x', '')
const garbage = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.string({ maxLength: 12, unit: 'binary' }),
  fc.constantFrom('1', '[[1]]', '{ a = 1 }', '[{ id = 1 }]', '{}', '[]', 'nan', '-inf', '"'),
)

test('any environment is loaded, or refused with listed failures', (t) => {
  const name = fc
    .array(word, { maxLength: 4 })
    .map((parts) => `SVC_${parts.join('__').toUpperCase()}`)
  fc.assert(
    fc.property(fc.dictionary(name, garbage, { maxKeys: 6 }), (environment) => {
      const result = load(assembly, { environment, names })
      t.true(result.tag === 'loaded' || result.failures.length > 0)
    }),
  )
})

test('any TOML text is loaded, or refused with listed failures', (t) => {
  const key = fc.array(
    word.map((one) => one || '""'),
    { minLength: 1, maxLength: 4 },
  )
  const row = fc.oneof(
    fc.tuple(key, garbage).map(([path, value]) => `${path.join('.')} = ${value}`),
    key.map((path) => `[${path.join('.')}]`),
    key.map((path) => `[[${path.join('.')}]]`),
    garbage,
  )
  fc.assert(
    fc.property(fc.array(row, { maxLength: 6 }), (rows) => {
      const result = read(rows.join('\n'))
      t.true(result.tag === 'loaded' || result.failures.length > 0)
    }),
    { numRuns: runs(1_000) },
  )
})

test('a value nested a thousand deep is a listed failure', (t) => {
  t.is(failuresOf(`web.names = ${'['.repeat(1_000)}${']'.repeat(1_000)}`).length, 1)
  t.is(failuresOf('', { SVC_WEB__NAMES: '['.repeat(100_000) }).length, 0)
})

test('two sections with one name cannot be assembled', (t) => {
  t.throws(() => assemble([section('a', {}), section('a', {})]), {
    message: /\[a\] is declared twice/,
  })
})
