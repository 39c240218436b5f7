/** French. No-break spaces precede colons, semicolons, question and exclamation marks. */
import type { MailCatalogue } from './en.js'

export const fr: MailCatalogue = {
  'mail.greeting': 'Bonjour,',
  'mail.ignore':
    'Si vous n’êtes pas à l’origine de cette demande, vous pouvez ignorer ce message : rien ne changera.',
  'mail.link.once': 'Le lien ne fonctionne qu’une fois, jusqu’au {time}.',
  'mail.link.copy': 'Si le bouton ne fonctionne pas, copiez cette adresse dans votre navigateur :',
  'mail.sender': 'Ce message a été envoyé pour le compte de {tenant}.',

  'sign_in.subject': 'Se connecter à {tenant}',
  'sign_in.lead':
    'Quelqu’un, probablement vous, souhaite se connecter à {tenant} avec cette adresse.',
  'sign_in.code': 'Saisissez ce code sur la page où vous l’avez demandé :',
  'sign_in.code.until':
    'Le code ne fonctionne qu’une fois, jusqu’au {time}. Ne le communiquez à personne.',
  'sign_in.link': 'Ouvrez ce lien dans le navigateur où vous l’avez demandé, puis confirmez :',
  'sign_in.button': 'Se connecter',

  'password_reset.subject': 'Définir un nouveau mot de passe pour {tenant}',
  'password_reset.lead':
    'Quelqu’un, probablement vous, a oublié le mot de passe de {tenant}. Choisissez-en un nouveau ici :',
  'password_reset.button': 'Choisir un nouveau mot de passe',

  'password_changed.subject': 'Votre mot de passe a été modifié',
  'password_changed.lead':
    'Le mot de passe de votre compte {tenant} a été modifié le {time}. Vous avez été déconnecté de tous vos autres appareils.',
  'password_changed.alarm':
    'Si ce n’était pas vous, réinitialisez immédiatement votre mot de passe et prévenez l’administrateur de {tenant}.',

  'account_recovery.subject': 'Récupération d’un compte chez {tenant}',
  'account_recovery.lead':
    'Un exploitant du service a émis le {time} un lien qui définit un nouveau mot de passe pour le compte {account} chez {tenant} et supprime ses seconds facteurs.',
  'account_recovery.alarm':
    'Si vous n’en connaissez pas la raison, contactez immédiatement l’exploitant du service.',

  'invitation.subject': 'Vous êtes invité à rejoindre {tenant}',
  'invitation.lead': 'Vous êtes invité à rejoindre {tenant}. Acceptez l’invitation ici :',
  'invitation.button': 'Accepter l’invitation',

  'email_verification.subject': 'Confirmez votre adresse e-mail pour {tenant}',
  'email_verification.lead': 'Confirmez que cette adresse e-mail est la vôtre :',
  'email_verification.button': 'Confirmer l’adresse',

  'sign_up.subject': 'Confirmez votre adresse pour {tenant}',
  'sign_up.lead':
    'Confirmez votre adresse pour terminer la création de votre compte chez {tenant} :',
  'sign_up.button': 'Terminer la création du compte',

  'sign_up_known.subject': 'Vous avez déjà un compte chez {tenant}',
  'sign_up_known.lead':
    'Vous avez essayé de vous inscrire chez {tenant} avec cette adresse, mais vous avez déjà un compte. Connectez-vous ici :',
  'sign_up_known.button': 'Se connecter',

  'confirmation_code.subject': 'Votre code pour {tenant}',
  'confirmation_code.lead': 'Saisissez ce code sur la page où vous l’avez demandé :',

  'text.code': '{code} est votre code pour {tenant}. Ne le communiquez à personne.',
}
