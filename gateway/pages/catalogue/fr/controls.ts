/** French texts of controls, consent and delegation pages, and the sections of the account page. */
import type { controls as english } from '../en/controls.js'

export const controls: Readonly<Record<keyof typeof english, string>> = {
  'time.now': 'à l’instant',
  'control.reveal': 'Afficher le mot de passe',
  'control.copy': 'Copier',
  'control.copied': 'Copié',
  'control.download': 'Télécharger',
  'control.print': 'Imprimer',
  'codes.file': 'Codes de récupération pour {tenant}. Chaque code ne sert qu’une fois.',
  'mfa.recovery.use': 'Utiliser un code de récupération',
  'mfa.recovery.code': 'Code de récupération',
  'account.nav': 'Sections de cette page',
  'account.security': 'Sécurité',
  'account.email': 'Adresse e-mail',
  'account.confirmed': 'Confirmé',
  'account.unconfirmed': 'Non confirmé',
  'account.codes': 'Codes de récupération',
  'account.codes.lead': 'Ils vous permettent de vous connecter si vous perdez vos autres facteurs.',
  'account.password.set': 'Vous avez un mot de passe.',
  'delegation.verified': 'Vérifié : {domain}',
  'delegation.unverified': 'Non vérifié',
  'delegation.verified.hint': 'Il appartient à l’organisation qui possède {domain}.',
  'delegation.unverified.hint':
    'Il n’appartient à aucune organisation dont le domaine est vérifié.',
  'delegation.time': 'Pour combien de temps',
  'delegation.time.value': '{time}, ou jusqu’à révocation de votre part',
  'delegation.origin': 'Demandé depuis',
}
