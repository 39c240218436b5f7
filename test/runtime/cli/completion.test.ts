/** `svc completion`: what bash offers for a line, and the scripts of other shells. */
import { execFileSync } from 'node:child_process'
import test from 'ava'

const MAIN = new URL('../../../runtime/main.js', import.meta.url).pathname
const script = execFileSync(process.execPath, [MAIN, 'completion'], { encoding: 'utf8' })

/** The completions of the last word. */
function offered(...line: readonly string[]): readonly string[] {
  const words = ['svc', ...line].map((word) => `'${word}'`).join(' ')
  const program = `${script}
    COMP_WORDS=(${words}); COMP_CWORD=${line.length}; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`
  const said = execFileSync('bash', ['-c', program], { encoding: 'utf8' })
  return said.split('\n').filter((word) => word !== '')
}

test('commands, commands of commands, and options', (t) => {
  t.deepEqual(offered('mig'), ['migrate'])
  t.deepEqual(offered('keys', 'ro'), ['rotate', 'rotate-data'])
  t.deepEqual(offered('agent', 'workspace', 'c'), ['create'])
  t.deepEqual(offered('keys', 'rotate', '--comp'), ['--compromised'])
  t.deepEqual(offered('agent', 'token', '--agent-file', 'a.json', '--del'), ['--delegation'])
})

test('zsh and fish get the same words with what the help says of them', (t) => {
  const of = (shell: string) =>
    execFileSync(process.execPath, [MAIN, 'completion', shell], { encoding: 'utf8' })
  const zsh = of('zsh')
  t.regex(zsh, /' keys'\) offer=\(.*'rotate:/)
  t.regex(zsh, /' users'\) offer=\(.*'suspend:suspend a user; their sessions end'/)
  const fish = of('fish')
  t.regex(fish, /-n '__svc_is " users"' -f -a suspend -d 'suspend a user; their sessions end'/)
  t.regex(fish, /-n '__svc_is " keys rotate"' -l compromised -d '/)
})

test('no option that the help hides, and nothing for a word that no command has', (t) => {
  t.deepEqual(offered('tour', '--base'), [])
  t.deepEqual(offered('nothing-like-it'), [])
  t.true(offered('').includes('serve'))
})
