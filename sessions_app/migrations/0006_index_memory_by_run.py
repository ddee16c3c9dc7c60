from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0005_index_unanswered_tool_calls'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='workingmemoryrevision',
            index=models.Index(condition=models.Q(('run__isnull', False)), fields=['run'], name='memory_by_run'),
        ),
    ]
