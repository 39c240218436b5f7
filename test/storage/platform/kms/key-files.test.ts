import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import {
  generateKeyDirectory,
  readKeyDirectory,
  rotateMasterKey,
} from '../../../../storage/platform/kms/key-directory.js'
import {
  formatKeyLine,
  KeyFileRefused,
  keyPaths,
  parseKeyLine,
  readKeyFile,
  writeKeyFile,
} from '../../../../storage/platform/kms/key-files.js'

const random = systemRandom(systemClock)

async function folder(t: { teardown: (work: () => Promise<void>) => void }): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'svc-keys-'))
  t.teardown(() => rm(path, { recursive: true, force: true }))
  return path
}

test('a key file is one line of the published form', (t) => {
  const key = new Uint8Array(32).fill(7)
  t.is(
    formatKeyLine('public', key),
    'svc-kms-public-v1 BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n',
  )
  t.deepEqual(parseKeyLine('public', formatKeyLine('public', key)), key)
})

const base64 = Buffer.alloc(32, 7).toString('base64')
for (const [title, text] of [
  ['another kind', `svc-kms-private-v1 ${base64}`],
  ['31 bytes', `svc-kms-public-v1 ${Buffer.alloc(31).toString('base64')}`],
  ['no padding', `svc-kms-public-v1 ${base64.replace('=', '')}`],
  ['stray bits', `svc-kms-public-v1 ${base64.replace('c=', 'd=')}`],
  ['a second line', `svc-kms-public-v1 ${base64}\n\n`],
  ['two spaces', `svc-kms-public-v1  ${base64}`],
  ['a carriage return', `svc-kms-public-v1 ${base64}\r\n`],
  ['nothing', ''],
] as const) {
  test(`a public key line with ${title} is refused`, (t) => {
    t.is(parseKeyLine('public', text), undefined)
  })
}

test('keygen writes both ends, private files closed to others', async (t) => {
  const directory = join(await folder(t), 'keys')
  await generateKeyDirectory(directory, random)
  const paths = keyPaths(directory)
  for (const path of [paths.serverPrivate, paths.clientPrivate, paths.master(1)]) {
    t.is((await stat(path)).mode & 0o777, 0o600)
  }
  t.is((await stat(directory)).mode & 0o777, 0o700)
  t.regex(await readFile(paths.clientPrivate, 'utf8'), /^svc-kms-private-v1 [A-Za-z0-9+/]{43}=\n$/)
  t.regex(await readFile(paths.serverPublic, 'utf8'), /^svc-kms-public-v1 [A-Za-z0-9+/]{43}=\n$/)
  const { master } = await readKeyDirectory(directory, random)
  t.regex(master.ids.join(), /^1-[0-9a-f]{16}$/)
})

test('keygen never overwrites keys and leaves no draft behind', async (t) => {
  const parent = await folder(t)
  const directory = join(parent, 'keys')
  await generateKeyDirectory(directory, random)
  const before = await readFile(keyPaths(directory).master(1), 'utf8')
  await t.throwsAsync(generateKeyDirectory(directory, random), { code: 'EEXIST' })
  t.is(await readFile(keyPaths(directory).master(1), 'utf8'), before)
  t.deepEqual(await readdir(parent), ['keys'])
})

for (const [title, mode] of [
  ['its group', 0o640],
  ['everybody', 0o604],
  ['other writers', 0o622],
] as const) {
  test(`a private key file open to ${title} is refused`, async (t) => {
    const path = join(await folder(t), 'client.private')
    await writeKeyFile('private', path, new Uint8Array(32))
    await chmod(path, mode)
    await t.throwsAsync(readKeyFile('private', path), {
      instanceOf: KeyFileRefused,
      message: /accessible to other users.*chmod 600/,
    })
    await chmod(path, 0o600)
    await t.notThrowsAsync(readKeyFile('private', path))
  })
}

test('a key directory open to others, without clients or without master keys is refused', async (t) => {
  const directory = join(await folder(t), 'keys')
  await generateKeyDirectory(directory, random)
  await chmod(directory, 0o755)
  await t.throwsAsync(readKeyDirectory(directory, random), { message: /accessible to other users/ })
  await chmod(directory, 0o700)
  await rm(keyPaths(directory).master(1))
  await t.throwsAsync(readKeyDirectory(directory, random), { message: /no master key/ })
  await rm(keyPaths(directory).clients, { recursive: true })
  await mkdir(keyPaths(directory).clients)
  await t.throwsAsync(readKeyDirectory(directory, random), { message: /no client key/ })
})

test('a missing or overlong key file is refused with its path', async (t) => {
  const directory = await folder(t)
  await t.throwsAsync(readKeyFile('public', join(directory, 'none')), { message: /none.*ENOENT/ })
  await writeFile(join(directory, 'long'), 'x'.repeat(1_000))
  await t.throwsAsync(readKeyFile('public', join(directory, 'long')), { message: /too long/ })
})

test('after a rotation the new master key wraps and the old one still unwraps', async (t) => {
  const directory = join(await folder(t), 'keys')
  await generateKeyDirectory(directory, random)
  const before = await readKeyDirectory(directory, random)
  const wrapped = before.master.wrap('a', new Uint8Array([1, 2, 3]))
  t.is(await rotateMasterKey(directory, random), 2)
  const after = await readKeyDirectory(directory, random)
  t.is(after.master.ids.length, 2)
  t.is(after.master.ids[0], before.master.ids[0])
  t.deepEqual([...after.master.unwrap('a', wrapped)], [1, 2, 3])
  const again = after.master.wrap('a', new Uint8Array([4]))
  t.throws(() => before.master.unwrap('a', again), { message: /unknown_master_key/ })
})
