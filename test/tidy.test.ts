/** The shape of the tree is behaviour too: a broken rule here fails the build. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import test from 'ava'
import { routes } from '../gateway/route-table.js'
import { toolProgram } from './support/tools.js'

const FILE_LINES_MAX = 600
const FOLDER_FILES_MAX = 25
const FUNCTION_LINES_MAX = 120
const FOLDERS = ['runtime', 'actors', 'gateway', 'storage', 'migrations', 'bench', 'test']
const DRAWERS = /(^|\/)(utils?|helpers?|common|misc|shared|lib|manager)(\/|\.ts$)/

const BANNED: [pattern: RegExp, instead: string, allowed: RegExp][] = [
  [
    /\bDate\.now\(|new Date\(\)/,
    'the Clock you were given',
    /^(runtime\/kernel\/(clock|log)\.ts|bench\/|test\/)/,
  ],
  [/\bnow\(\)\.getTime\(\) \/ 1000\b/, 'nowSecs of the clock', /^$/],
  [
    /\bAbortSignal\.any\b/,
    'limitedTo or endedBy of the clock',
    /^(runtime\/kernel\/clock\.ts|bench\/|test\/)/,
  ],
  [/\bMath\.random\(/, 'the Random you were given', /^(bench|test)\//],
  [
    /\bprocess\.env\b/,
    'the settings you were given',
    // The samples are programs for readers.
    /^(runtime\/kernel\/config\/|bench\/|test\/|gateway\/apps\/openapi\/samples\.ts$)/,
  ],
  [
    /\bconsole\.(?:log|info|warn|error|debug|trace|dir|table|time)\b/,
    'the logger you were given',
    /^(bench\/|gateway\/apps\/openapi\/samples\.ts$)/,
  ],
  [
    /\bz\.url\((?:\{|\)\.max)|\bprotocol [!=]== 'https:'|\/\^https|startsWith\('https:/,
    'httpsUrl or HttpsUrl',
    // Settings and addresses of the service, the target of a connection, and spellings that are not judged.
    new RegExp(
      '^((runtime|bench|test|gateway/(?!routes/))|actors/platform/outbound-http/|' +
        'actors/(domain/entities/https-url|oauth/tokens/(issue/audience|clients/metadata/client-id)|commerce/wallets/payment)[.]ts)',
    ),
  ],
  [/\bas any\b|: any[,;)\]=\s]*$|<any>/m, 'a type', /^test\/tidy\.test\.ts$/],
  [/,\s*tx: Transaction\b/, 'tx as the first parameter', /^$/],
  [/\b(TODO|FIXME|XXX)[:( ]/, 'finished work', /^test\/tidy\.test\.ts$/],
  [/^\s*t\.pass\(\)$/m, 'an assertion that can fail', /^test\/tidy\.test\.ts$/],
]

type Limits = Readonly<Record<string, number>>

const sources = FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => ({ path: join(folder, name), text: readFileSync(join(folder, name), 'utf8') })),
)

/** Every relative import as [importing file, imported file], both from the root. */
const imports = sources.flatMap(({ path, text }) =>
  [...text.matchAll(/(?:from|import) '(\.[^']+)'/g)].map(([, target]): [string, string] => [
    path,
    normalize(join(dirname(path), target ?? '')).replace(/\.js$/, '.ts'),
  ]),
)

test('the tree was found', (t) => t.true(sources.length > 100))

test('no file is longer than a reader can hold', (t) => {
  const long = sources
    .map(({ path, text }) => ({ path, lines: text.split('\n').length }))
    .filter(({ lines }) => lines > FILE_LINES_MAX)
    .map(({ path, lines }) => `${path}: ${lines}`)
  t.deepEqual(long, [])
})

test('no function is longer than a reader can hold, and older ones do not grow', (t) => {
  // Files with one longer function, and its lines at most. An entry goes when its function is split.
  const before = JSON.parse(readFileSync('test/runner/long-functions.json', 'utf8')) as Limits
  const { stdout } = spawnSync(
    toolProgram('oxlint'),
    ['-A', 'all', '-D', 'max-lines-per-function', '-f', 'json', ...FOLDERS],
    { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  )
  const found = JSON.parse(stdout) as { diagnostics: { filename: string; message: string }[] }
  t.true(found.diagnostics.length > 100, 'the linter finds functions')
  const long = found.diagnostics
    .map(({ filename, message }) => ({ filename, lines: Number(/\((\d+)\)/.exec(message)?.[1]) }))
    .filter(({ lines }) => lines > FUNCTION_LINES_MAX)
  const longer = long.filter(({ filename, lines }) => lines > (before[filename] ?? 0))
  t.deepEqual(longer, [], `a function has at most ${FUNCTION_LINES_MAX} lines`)
  const isLong = new Set(long.map(({ filename }) => filename))
  const over = Object.keys(before).filter((filename) => !isLong.has(filename))
  t.deepEqual(over, [], 'these files have no long function any more: remove them from the list')
})

test('no file or folder is a drawer', (t) => {
  t.deepEqual(
    sources.map(({ path }) => path).filter((path) => DRAWERS.test(path)),
    [],
  )
})

/** The seven areas; platform and domain are for all of them. */
const AREAS = ['identity', 'oauth', 'agents', 'vault', 'commerce', 'webhooks', 'operations']
const areaOf = (path: string) => /^actors\/([^/]+)\//.exec(path)?.[1] ?? ''
/** A service is a folder of an area. It may have several actors, each with a protocol. */
const serviceOf = (path: string) => /^actors\/[^/]+\/[^/]+(?=\/)/.exec(path)?.[0]
const isProtocol = (path: string) => /^actors\/[^/]+\/[^/]+\/(.+\/)?protocol\.ts$/.test(path)

test('a service knows another only by its protocols', (t) => {
  const trespasses = imports
    .filter(([from, to]) => from.startsWith('actors/') && AREAS.includes(areaOf(to)))
    .filter(([from, to]) => serviceOf(from) !== serviceOf(to) && !isProtocol(to))
  t.deepEqual(trespasses, [])
})

test('actors lie in the areas, in platform or in domain', (t) => {
  const elsewhere = sources
    .filter(({ path }) => path.startsWith('actors/'))
    .filter(({ path }) => ![...AREAS, 'platform', 'domain'].includes(areaOf(path)))
  t.deepEqual(elsewhere, [])
})

test('a protocol knows the kernel, the domain and other protocols, nothing else', (t) => {
  const trespasses = imports
    .filter(([from]) => isProtocol(from))
    .filter(
      ([, to]) =>
        !/^(runtime\/kernel\/|actors\/domain\/|storage\/platform\/sealing\/sealer)/.test(to) &&
        !isProtocol(to),
    )
  t.deepEqual(trespasses, [])
})

const appOf = (path: string) => /^gateway\/apps\/([^/]+)\//.exec(path)?.[1]

test('an app of the gateway is imported only where the routes are listed', (t) => {
  const used = imports.filter(([from, to]) => appOf(to) !== undefined && appOf(from) !== appOf(to))
  const product = used.filter(([from]) => !/^(bench|test)\//.test(from))
  t.true(product.length >= 4)
  t.deepEqual(
    product.filter(([from]) => from !== 'gateway/gateway.ts'),
    [],
  )
})

test('each product of runtime/ is a project with a wall', (t) => {
  const products = readdirSync('runtime')
    .filter((name) => !/\./.test(name))
    .toSorted()
  t.deepEqual(products, ['cli', 'clients', 'embedded', 'kernel', 'process'])
  const wallOf = (product: string) => {
    const { references } = JSON.parse(readFileSync(`runtime/${product}/tsconfig.json`, 'utf8')) as {
      references: { path: string }[]
    }
    return references.map(({ path }) => normalize(join('runtime', product, path)))
  }
  t.deepEqual(wallOf('kernel'), [])
  t.deepEqual(wallOf('embedded'), ['runtime/kernel'])
  t.deepEqual(wallOf('clients'), ['runtime/kernel', 'actors/domain', 'actors/platform/undici'])
  t.deepEqual(
    wallOf('process').filter((path) => /^runtime\/(cli|clients)$/.test(path)),
    [],
  )
})

test('a folder holds at most 25 files', (t) => {
  const count = new Map<string, number>()
  for (const { path } of sources) count.set(dirname(path), (count.get(dirname(path)) ?? 0) + 1)
  const full = [...count].filter(([, files]) => files > FOLDER_FILES_MAX)
  t.deepEqual(full, [])
})

test('no module imports itself by way of others', (t) => {
  const next = new Map<string, string[]>()
  for (const [from, to] of imports) next.set(from, [...(next.get(from) ?? []), to])
  const done = new Set<string>()
  const circles: string[] = []
  const follow = (path: string, way: readonly string[]) => {
    if (way.includes(path)) circles.push([...way.slice(way.indexOf(path)), path].join(' -> '))
    if (way.includes(path) || done.has(path)) return
    for (const to of next.get(path) ?? []) follow(to, [...way, path])
    done.add(path)
  }
  for (const path of next.keys()) follow(path, [])
  t.deepEqual(circles, [])
})

test('every imported file exists', (t) => {
  t.deepEqual(
    imports.filter(([, to]) => !existsSync(to)),
    [],
  )
})

test('what is exported is used somewhere', (t) => {
  const users = new Map<string, Set<string>>()
  for (const { path, text } of sources) {
    for (const word of text.match(/\b[A-Za-z_$][\w$]*\b/g) ?? []) {
      users.set(word, (users.get(word) ?? new Set()).add(path))
    }
  }
  const dead = sources
    .filter(({ path }) => !/^(test|bench)\//.test(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/^export (?:async )?(?:const|function|class) (\w+)/gm)]
        .map(([, name]) => name!)
        .filter((name) => users.get(name)!.size === 1)
        .filter((name) => text.match(new RegExp(`\\b${name}\\b`, 'g'))!.length === 1)
        .map((name) => `${path}: ${name}`),
    )
  t.deepEqual(dead, [])
})

const EXPLAINED = /^\/\*\* Own service: \S.+/

test('a file that starts its own service says why in its first line', (t) => {
  const unexplained = sources
    .filter(({ path, text }) => path.endsWith('.test.ts') && /\bownService\(/.test(text))
    .filter(({ text }) => !EXPLAINED.test(text))
    .map(({ path }) => path)
  t.deepEqual(unexplained, [], '/** Own service: it ... */ is missing')
})

/** They lock or look up first, or replace several rows. */
const MORE_THAN_THEIR_STATEMENT = new Set([
  'judgeRemoval',
  'lockAccountInSession',
  'lockMailbox',
  'personFactors',
  'replaceRecoveryCodes',
  'replaceWalletBudgets',
])
const wordsOf = (name: string) =>
  name
    .split(/_|(?=[A-Z])/)
    .map((word) => word.toLowerCase().replace(/(?<=...)s$/, ''))
    .filter((word) => !['of', 'by', 'in', 'to'].includes(word))

/**
 * `vault_grant.revoke` is sent by a function that begins with `revoke`, or with `revoking` if it only returns the statement.
 * The name of a statement that says what it reads (`agent.profile`) follows `find`, `list`, `is` or `has`, or is in the name.
 */
function agrees(name: string, statement: string): boolean {
  const [verb = '', ...rest] = wordsOf(statement)
  const [first = '', ...others] = wordsOf(name)
  if (first === verb || first === `${verb.replace(/e$/, '')}ing`) return true
  if (/^(find|list|is|has)$/.test(first)) return !/^(find|list|count)$/.test(verb)
  return [verb, ...rest].every((word) => first === word || others.includes(word))
}

test('a function of storage has the verb of its statement', (t) => {
  const senders = sources
    .filter(({ path }) => /^storage\/(?!platform\/)/.test(path))
    .flatMap(({ text }) => text.split(/^(?=(?:export )?(?:async )?(?:function|const) )/m))
    .map((part) => ({
      name: /^(?:export )?(?:async )?(?:function|const) ([a-z]\w*)/.exec(part)?.[1] ?? '',
      sent: [...part.matchAll(/^ +name: .*$|listing<\w+>\(\s*'.*'/gm)].flatMap(([line]) =>
        [...line.matchAll(/'\w+\.(\w+)'/g)].map(([, statement = '']) => statement),
      ),
    }))
    .filter(({ name, sent }) => name !== '' && sent.length > 0)
    .filter(({ name }) => !MORE_THAN_THEIR_STATEMENT.has(name))
  t.true(senders.length > 600)
  t.deepEqual(
    senders.filter(({ name, sent }) => !sent.some((statement) => agrees(name, statement))),
    [],
  )
})

test('a function of storage has the name of no operation', (t) => {
  const operations = new Set(routes.map(({ operationId }) => operationId))
  const named = sources.flatMap(({ path, text }) =>
    path.startsWith('storage/')
      ? [...text.matchAll(/^(?:export )?(?:async )?(?:function|const) (\w+)/gm)].map(
          ([, name]) => name!,
        )
      : [],
  )
  t.true(named.length > 900)
  t.deepEqual(
    named.filter((name) => operations.has(name)),
    [],
  )
})

test('a search for an operation of an actor finds its handler or its table', (t) => {
  const near = sources.filter(({ path }) => /^(actors|storage)\//.test(path) && !isProtocol(path))
  const words = new Set(near.flatMap(({ text }) => text.match(/\b\w+\b/g) ?? []))
  // The route of a published document says which one the message asks for.
  const served = routes.filter(
    ({ target }) => target.via === 'actor' && !/document/i.test(target.kind),
  )
  t.deepEqual(
    served.map(({ operationId }) => operationId).filter((name) => !words.has(name)),
    [],
  )
})

test('storage and the kernel speak no HTTP', (t) => {
  const speaking = sources
    .filter(({ path }) => path.startsWith('storage/') || path.startsWith('runtime/kernel/'))
    .filter(({ text }) => /uWebSockets|node:http2?'/.test(text))
    .map(({ path }) => path)
  t.deepEqual(speaking, [])
})

for (const [pattern, instead, allowed] of BANNED) {
  test(`use ${instead}, not ${pattern.source}`, (t) => {
    const found = sources
      .filter(({ path, text }) => pattern.test(text) && !allowed.test(path))
      .map(({ path }) => path)
    t.deepEqual(found, [])
  })
}

/** Files that take public keys or verify signatures with node:crypto, and what they do instead of reading JWTs of others. */
const NODE_VERIFIES = {
  'actors/agents/proof-of-work/signatures.ts': 'signatures of agents over text',
  'actors/domain/agents/agent-keys.ts': 'raw keys of agents',
  'actors/oauth/signing-keys/rotation.ts': 'our new key pair',
  'actors/platform/jose/own-jwt.ts': 'our own tokens',
  'actors/vault/ssh-certificates/keys.ts': 'SSH keys',
  'runtime/cli/seed/mixed.ts': 'made-up agents',
  'runtime/clients/client/agent.ts': 'the key of the agent itself',
  'runtime/kernel/key-pair.ts': 'new key pairs',
}

test('JWTs and JWKs of others are verified, imported and decoded by jose', (t) => {
  const ours = sources.filter(({ path }) => !/^(test|bench)\//.test(path))
  const matching = (pattern: RegExp) =>
    ours.filter(({ text }) => pattern.test(text)).map(({ path }) => path)
  t.deepEqual(
    matching(/import \{[^}]*\b(createPublicKey|verify)\b[^}]*\} from 'node:crypto'/).toSorted(),
    Object.keys(NODE_VERIFIES),
  )
  // The second one reads a cookie of the console.
  t.deepEqual(matching(/JSON\.parse\(\s*Buffer\.from\([^)]*'base64url'/).toSorted(), [
    'actors/platform/jose/own-jwt.ts',
    'gateway/apps/console/session.ts',
  ])
})

for (const path of ['package-lock.json', 'test/tools/package-lock.json']) {
  test(`${path} names every optional package with its checksum, so that npm ci accepts it anywhere`, (t) => {
    type Entry = {
      optionalDependencies?: Record<string, string>
      resolved?: string
      integrity?: string
      link?: boolean
    }
    const lock = JSON.parse(readFileSync(path, 'utf8')) as {
      packages: Record<string, Entry>
    }
    const missing = Object.entries(lock.packages).flatMap(([at, entry]) =>
      Object.keys(entry.optionalDependencies ?? {}).filter(
        (name) =>
          lock.packages[`node_modules/${name}`] === undefined &&
          lock.packages[`${at}/node_modules/${name}`] === undefined,
      ),
    )
    // A registry that lacked the binaries of some platforms left their checksums out.
    const unchecked = Object.entries(lock.packages)
      .filter(([at, { integrity, link }]) => at !== '' && link !== true && integrity === undefined)
      .map(([at]) => at)
    const remedy =
      'delete what has no checksum, then npm install --package-lock-only --ignore-scripts'
    t.deepEqual([...missing, ...unchecked], [], remedy)
    const addressed = Object.entries(lock.packages).filter(([, { resolved }]) =>
      resolved?.startsWith('http'),
    )
    t.deepEqual(addressed, [], 'no download addresses')
  })
}
