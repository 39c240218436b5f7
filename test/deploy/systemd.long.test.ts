/** deploy/systemd: systemd accepts the units, and rates what they may do. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { testWithProgram } from '../support/service/programs.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const FOLDER = join(ROOT, 'deploy/systemd')
const UNITS = readdirSync(FOLDER).filter((name) => name.endsWith('.service'))
/** Of 100 (10.0 is unsafe). systemd calls up to 1.9 OK. */
const EXPOSURE_MAX = { 'svc.service': 15, 'svc-migrate.service': 15, 'svc-kms.service': 5 }

for (const unit of UNITS) {
  testWithProgram('systemd-analyze', `${unit} is a valid and closed unit`, (t, program) => {
    const { status, stderr } = spawnSync(program, ['verify', join(FOLDER, unit)], {
      encoding: 'utf8',
    })
    // The programs of the unit are not installed where the tests run, nor are the neighbours of the unit.
    const faults = stderr
      .split('\n')
      .filter((line) => line.includes(unit) || line.includes('svc'))
      .filter((line) => !/is not executable|Unit [\w.-]+ not found|No such file/.test(line))
    t.deepEqual(faults, [], `${status}`)
    const rated = execFileSync(
      program,
      ['security', '--offline=true', '--json=short', '--no-pager', join(FOLDER, unit)],
      { encoding: 'utf8' },
    )
    t.regex(rated, /^\[/)
    const threshold = EXPOSURE_MAX[unit as keyof typeof EXPOSURE_MAX]
    const judged = spawnSync(
      program,
      ['security', '--offline=true', '--no-pager', `--threshold=${threshold}`, join(FOLDER, unit)],
      { encoding: 'utf8' },
    )
    t.is(judged.status, 0, judged.stdout.slice(-200))
  })
}

test('a unit starts programs of the source tree with options that exist', (t) => {
  for (const unit of UNITS) {
    const text = readFileSync(join(FOLDER, unit), 'utf8')
    const [, command = ''] = /^ExecStart=(.*)$/m.exec(text) ?? []
    const files = [...command.matchAll(/\/opt\/svc\/(\S+)/g)].map(([, path]) => path!)
    t.true(files.length > 0, unit)
    for (const path of files) t.true(existsSync(join(ROOT, path)), path)
    const words = command
      .split(/\/opt\/svc\/\S+ /)
      .at(-1)!
      .split(' ')
    const names = words.filter((word) => /^[a-z]+$/.test(word))
    const help = execFileSync(
      process.execPath,
      [join(ROOT, 'dist/runtime/main.js'), ...names, '--help'],
      { encoding: 'utf8' },
    )
    for (const option of words.filter((word) => word.startsWith('--'))) {
      t.true(help.includes(option), `${names.join(' ')} ${option}`)
    }
    const [, user] = /^User=(.*)$/m.exec(text) ?? []
    t.regex(readFileSync(join(FOLDER, 'svc.sysusers'), 'utf8'), new RegExp(`^u ${user} `, 'm'))
  }
})
